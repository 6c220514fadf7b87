# What the caller gave is a value, never make text: `make 'BUILD=$(shell ...)'` runs nothing. make would expand such a
# variable when it hands it to a recipe's environment; one that is simply assigned is handed on as it is.
given     = $(filter command environment override,$(firstword $(origin $(1))))
literally = $(eval override $(1) := $$(value $(1)))
$(foreach name,$(SETTINGS),$(if $(call given,$(name)),$(call literally,$(name))))
# An environment often has a NAME or a TYPE that means something else.
$(foreach name,$(ARGUMENTS),$(if $(filter command,$(firstword $(origin $(name)))),\
  $(call literally,$(name)),$(eval $(name) :=)))
export $(SETTINGS) $(ARGUMENTS)

# A misspelt setting would otherwise be ignored in silence.
UNKNOWN := $(filter-out $(SETTINGS) $(ARGUMENTS),$(sort $(foreach name,$(.VARIABLES),\
             $(if $(filter command,$(firstword $(origin $(name)))),$(name)))))
$(if $(UNKNOWN),$(error $(UNKNOWN): no such setting. There are: $(SETTINGS) $(ARGUMENTS)))
