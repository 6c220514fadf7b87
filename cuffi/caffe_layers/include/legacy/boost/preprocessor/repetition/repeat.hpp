// BOOST_PP_REPEAT(n, macro, data) expands to macro(_, 0, data) ... macro(_, n - 1, data). Here n is
// at most 10.
#pragma once

#define BOOST_PP_REPEAT(n, macro, data) BOOST_PP_REPEAT_N(n, macro, data)
#define BOOST_PP_REPEAT_N(n, macro, data) BOOST_PP_REPEAT_##n(macro, data)
#define BOOST_PP_REPEAT_0(macro, data)
#define BOOST_PP_REPEAT_1(macro, data) BOOST_PP_REPEAT_0(macro, data) macro(_, 0, data)
#define BOOST_PP_REPEAT_2(macro, data) BOOST_PP_REPEAT_1(macro, data) macro(_, 1, data)
#define BOOST_PP_REPEAT_3(macro, data) BOOST_PP_REPEAT_2(macro, data) macro(_, 2, data)
#define BOOST_PP_REPEAT_4(macro, data) BOOST_PP_REPEAT_3(macro, data) macro(_, 3, data)
#define BOOST_PP_REPEAT_5(macro, data) BOOST_PP_REPEAT_4(macro, data) macro(_, 4, data)
#define BOOST_PP_REPEAT_6(macro, data) BOOST_PP_REPEAT_5(macro, data) macro(_, 5, data)
#define BOOST_PP_REPEAT_7(macro, data) BOOST_PP_REPEAT_6(macro, data) macro(_, 6, data)
#define BOOST_PP_REPEAT_8(macro, data) BOOST_PP_REPEAT_7(macro, data) macro(_, 7, data)
#define BOOST_PP_REPEAT_9(macro, data) BOOST_PP_REPEAT_8(macro, data) macro(_, 8, data)
#define BOOST_PP_REPEAT_10(macro, data) BOOST_PP_REPEAT_9(macro, data) macro(_, 9, data)
