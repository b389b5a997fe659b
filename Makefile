# make          the list of commands
# make run      build, and see it balance real traffic between local servers (CONFIG=path: run that file instead)
# make test     everything that has to pass before a change goes in
# make soak     connections, breaking members and a reload, for SOAK=10m (SOAK_SEED= another schedule)
# make bench    what a choice, a connection and a test of a member cost
# make build    ./sing-box (NAME= another name, TAGS= other build tags)
# make install  into PREFIX=/usr/local

NAME        ?= sing-box
PREFIX      ?= /usr/local
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
TAGS        ?= with_gvisor,with_quic,with_dhcp,with_utls,with_acme,with_clash_api,with_v2ray_api
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: help build run test lint unit blackbox soak bench install clean

help:
	@sed -n 's/^# make/make/p' Makefile

build:
	go build -trimpath -tags "$(TAGS)" -ldflags "-X main.version=$(VERSION)" -o "$(NAME)" ./cmd/sing-box

run: build
ifdef CONFIG
	"./$(NAME)" run -c "$(CONFIG)"
else
	go run ./test/demo "./$(NAME)"
endif

test: lint unit blackbox

# With and without the build tags: both are compiled by somebody.
lint:
	@test -z "$$(gofmt -l .)" || { echo "not formatted as gofmt does:"; gofmt -l .; exit 1; }
	go vet ./...
	go vet -tags "$(TAGS)" ./...
	go run $(STATICCHECK) ./...
	go run $(STATICCHECK) -tags "$(TAGS)" ./...

# include starts a box in the process; sing-box 1.14.1 races with itself there (NetworkManager.Start and updateInterface).
unit:
	go test -race $$(go list ./... | grep -v -e '/test$$' -e '/include$$')
	go test ./include

blackbox:
	go test -count=1 -timeout 10m ./test

SOAK      ?= 10m
SOAK_SEED ?= 1
soak:
	SOAK=$(SOAK) SOAK_SEED=$(SOAK_SEED) go test -count=1 -v -timeout 24h -run '^TestSoak$$' ./test

bench:
	go test -run '^$$' -bench . ./common/... ./protocol/...
	go test -run '^$$' -bench . -benchtime 9x ./include

install: build
	install -D -m 755 "$(NAME)" "$(DESTDIR)$(PREFIX)/bin/$(NAME)"

clean:
	rm -f "$(NAME)"
