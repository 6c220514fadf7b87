"""The macros by which a source registers a Caffe layer. Every make uses them, so nothing is imported here."""

# REGISTER_LAYER_CLASS(Pooling), REGISTER_LAYER_CREATOR(Pooling, GetPoolingLayer)
REGISTER = ("REGISTER_LAYER_CLASS", "REGISTER_LAYER_CREATOR")
# INSTANTIATE_CLASS(PoolingLayer). Forks have similar macros: INSTANTIATE_CLASS_CPU, INSTANTIATE_CLASS_3T_GUARDED
INSTANTIATE = "INSTANTIATE_CLASS"
