"""A net with a multiplier of each kind, for solvers."""

NET = """
input: "data" input_shape { dim: 4 dim: 3 } input: "label" input_shape { dim: 4 dim: 2 }
layer { name: "a" type: "InnerProduct" bottom: "data" top: "a" param { lr_mult: 1 decay_mult: 1 }
  param { lr_mult: 2 decay_mult: 0 } inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "b" type: "InnerProduct" bottom: "a" top: "b" param { lr_mult: 0.5 decay_mult: 3 } param { lr_mult: 0 }
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "b" bottom: "label" top: "loss" }
"""
