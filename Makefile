.DEFAULT_GOAL := build
.PHONY: tools
TOOLS := .tools
tools: $(TOOLS)/.laid
$(TOOLS)/.laid: tools/requirements.txt
	python3 -m venv --clear $(TOOLS)/py
	$(TOOLS)/py/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement tools/requirements.txt
	touch $@
