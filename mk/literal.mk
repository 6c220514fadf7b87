# make must not expand the user's values: `make 'BUILD=$(shell ...)'` runs nothing. make would expand them for a
# recipe's environment, so each is assigned again, literally.
given     = $(filter command environment override,$(firstword $(origin $(1))))
literally = $(eval override $(1) := $$(value $(1)))
$(foreach name,$(SETTINGS),$(if $(call given,$(name)),$(call literally,$(name))))
# Arguments only come from the command line: an environment may have a NAME or a TYPE with another meaning.
$(foreach name,$(ARGUMENTS),$(if $(filter command,$(firstword $(origin $(name)))),\
  $(call literally,$(name)),$(eval $(name) :=)))
export $(SETTINGS) $(ARGUMENTS)

# Refuse a misspelt setting, which make would ignore.
UNKNOWN := $(filter-out $(SETTINGS) $(ARGUMENTS),$(sort $(foreach name,$(.VARIABLES),\
             $(if $(filter command,$(firstword $(origin $(name)))),$(name)))))
$(if $(UNKNOWN),$(error $(UNKNOWN): no such setting. There are: $(SETTINGS) $(ARGUMENTS)))
# Some targets take one LAYER. Those that build would ignore it, and build all.
$(if $(LAYER),$(if $(filter all libraries,$(or $(MAKECMDGOALS),all)),$(error LAYER=$(LAYER): to build it alone: LAYERS=$(LAYER))))
