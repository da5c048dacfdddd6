# Every target does its own set-up; `make help` lists them.
.DEFAULT_GOAL := help

node_modules: package.json package-lock.json
	npm ci --ignore-scripts
	@touch node_modules

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

.PHONY: check
check: node_modules ## types, lint and unit tests: the inner loop
	npx tsc --noEmit
	npx biome check .
	npm run --silent test:unit
