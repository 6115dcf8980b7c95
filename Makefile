# `make` lists the targets.
GOLANGCI_VERSION := v2.15.0
GOBIN            := $(shell go env GOPATH)/bin
GOLANGCI         := $(GOBIN)/golangci-lint
MODULES          := . rywtest suite_test suite_test/adminpage examples examples/frameworks examples/jobs bench rywgrpc rywotel rywprom rywredis packaging

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

.PHONY: postgres
postgres: ## Check that PostgreSQL's binaries are here, or say how to get them
	@go run ./rywtest/cmd/findpg

.PHONY: test
test: ## Run every test of every module, with the race detector
	go test -race work

.PHONY: quickstart
quickstart: ## Watch a primary and two replicas at work
	go run ./examples/quickstart

.PHONY: bench
bench: ## Print the figures
	go run ./bench

.PHONY: scenarios
scenarios: ## Compare ways to choose a replica, under load, with lag and faults
	go run ./bench -scenarios -rounds 3

.PHONY: growth
growth: ## Measure how costs grow, and draw it
	go run ./bench -growth -plot bench/growth.svg

COMPOSE = $(shell docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose) -p ryw -f rywtest/docker/compose.yaml

.PHONY: cluster-up
cluster-up: ## Start a primary and two replicas in containers, on ports 54320 to 54322; RYWTEST_IMAGE chooses the image
	$(COMPOSE) up -d

.PHONY: cluster-down
cluster-down: ## Remove them with their data
	$(COMPOSE) down -v

.PHONY: images
images: ## Build images of PostgreSQL 15, 17 and 18 from Debian's packages, where no registry is to be had
	@for v in 15 17 18; do rywtest/docker/build-image.sh $$v || [ $$? -eq 3 ] || exit 1; done

.PHONY: clean-templates
clean-templates: ## Remove the databases, and images of them, that rywtest keeps for its next clusters
	go run ./rywtest/cmd/cleanup

.PHONY: clean-images
clean-images: clean-templates ## Remove these, and what "images" has built
	docker images --quiet --filter=reference=gorm-ryw/postgres | sort -u | xargs -r docker image rm

.PHONY: clean-leftovers
clean-leftovers: ## Remove all of rywtest's containers and networks, of running tests too: for after a power cut
	go run ./rywtest/cmd/cleanup -leftovers

.PHONY: lint
lint: $(GOLANGCI) ## Check style and structure
	@for m in $(MODULES); do echo "lint $$m"; (cd $$m && $(GOLANGCI) run ./...) || exit 1; done

.PHONY: fmt
fmt: $(GOLANGCI) ## Format the code
	@for m in $(MODULES); do (cd $$m && $(GOLANGCI) fmt ./...) || exit 1; done

.PHONY: tidy
tidy: ## Bring every go.mod up to date
	@for m in $(MODULES); do (cd $$m && go mod tidy) || exit 1; done

.PHONY: packaging
packaging: ## Build every module of the last commit as its users will: against a tagged root, without go.work
	go run ./packaging

.PHONY: licences
licences: ## Look at the licences of all that is imported
	go run ./packaging -licences

$(GOLANGCI):
	go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
