package include_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"tarazu/include"
	"tarazu/option"

	upstream "github.com/sagernet/sing-box/include"
	box "github.com/sagernet/sing-box/option"
	"github.com/sagernet/sing/common/json"
	"github.com/sagernet/sing/service"
)

func TestContext_KeepsEveryTypeOfSingBox(t *testing.T) {
	ctx := include.Context(context.Background())
	outbounds := service.FromContext[box.OutboundOptionsRegistry](ctx).OptionTypes()
	for _, it := range upstream.OutboundRegistry().OptionTypes() {
		if !slices.Contains(outbounds, it) {
			t.Errorf("no outbound type %s", it)
		}
	}
	if !slices.Contains(outbounds, option.TypeBalancer) {
		t.Error("no balancer")
	}
	services := service.FromContext[box.ServiceOptionsRegistry](ctx).OptionTypes()
	if expected := upstream.ServiceRegistry().OptionTypes(); !slices.Equal(services, expected) {
		t.Errorf("services %v, not %v", services, expected)
	}
}

func TestContext_MonitorIsNotWrittenAsAService(t *testing.T) {
	_, err := json.UnmarshalExtendedContext[option.Options](include.Context(context.Background()), []byte(`{"services": [{"type": "monitoring"}]}`))
	if err == nil || !strings.Contains(err.Error(), "monitoring") {
		t.Fatal(err)
	}
}
