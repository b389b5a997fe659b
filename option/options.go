// Package option is the configuration of this project: sing-box's, with the `balancer` outbound and with
// `experimental.monitoring` and `experimental.unified_delay` (SPEC S1).
package option

import (
	"bytes"
	"context"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	box "github.com/sagernet/sing-box/option"
	E "github.com/sagernet/sing/common/exceptions"
	F "github.com/sagernet/sing/common/format"
	"github.com/sagernet/sing/common/json"
)

// Options is a whole configuration. It is decoded and encoded like sing-box's, with a context from include.Context.
type Options struct {
	box.Options
	// Monitoring is `experimental.monitoring`; nil where it is not written.
	Monitoring *MonitoringOptions
	// UnifiedDelay is `experimental.unified_delay`.
	UnifiedDelay *UnifiedDelayOptions
}

// plainOptions are sing-box's options without their methods, so that the decoder goes through their fields.
type plainOptions box.Options

// document is the configuration as it is written: sing-box's, whose `experimental` it replaces by one with our keys.
type document struct {
	plainOptions
	Experimental *experimentalOptions `json:"experimental,omitempty"`
}

type experimentalOptions struct {
	box.ExperimentalOptions
	Monitoring   *MonitoringOptions   `json:"monitoring,omitempty"`
	UnifiedDelay *UnifiedDelayOptions `json:"unified_delay,omitempty"`
}

// MarshalJSONContext writes the configuration with all keys.
func (o Options) MarshalJSONContext(ctx context.Context) ([]byte, error) {
	written := document{plainOptions: plainOptions(o.Options)}
	if o.Experimental != nil || o.Monitoring != nil || o.UnifiedDelay != nil {
		written.Experimental = &experimentalOptions{Monitoring: o.Monitoring, UnifiedDelay: o.UnifiedDelay}
		if o.Experimental != nil {
			written.Experimental.ExperimentalOptions = *o.Experimental
		}
	}
	return json.MarshalContext(ctx, written)
}

// UnmarshalJSONContext reads a configuration. An error names the place by the path of the field, and an outbound by its
// type and tag too.
func (o *Options) UnmarshalJSONContext(ctx context.Context, content []byte) error {
	decoder := json.NewDecoderContext(ctx, bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	var read document
	if err := decoder.Decode(&read); err != nil {
		return explain(ctx, content, err)
	}
	*o = Options{Options: box.Options(read.plainOptions)}
	if read.Experimental != nil {
		o.Options.Experimental = &read.Experimental.ExperimentalOptions
		o.Monitoring, o.UnifiedDelay = read.Experimental.Monitoring, read.Experimental.UnifiedDelay
	}
	o.RawMessage = content
	return o.checkTags()
}

// Box returns the options to build a box from: sing-box's, with the monitor among the services where the configuration
// has something to say to it, and with processes looked up where a balancer goes by them (S4.5).
func (o *Options) Box() box.Options {
	options := o.Options
	if o.needsProcess() {
		var route box.RouteOptions
		if o.Route != nil {
			route = *o.Route
		}
		route.FindProcess = true
		options.Route = &route
	}
	if o.Monitoring == nil && o.UnifiedDelay == nil && !slices.ContainsFunc(o.Outbounds, hasOwnMonitoring) {
		return options
	}
	monitor := &MonitoringServiceOptions{Written: o.Monitoring != nil, Servers: o.tcpServers()}
	if o.Monitoring != nil {
		monitor.Monitoring = *o.Monitoring
	}
	if o.UnifiedDelay != nil {
		monitor.UnifiedDelay = o.UnifiedDelay.Enabled
	}
	// A new list: the caller's may be used again for a reload.
	options.Services = append([]box.Service{{Type: TypeMonitoring, Tag: TagMonitoring, Options: monitor}}, o.Services...)
	return options
}

func hasOwnMonitoring(it box.Outbound) bool {
	balancer, isBalancer := it.Options.(*BalancerOutboundOptions)
	return isBalancer && balancer.Monitoring != nil
}

func (o *Options) needsProcess() bool {
	return slices.ContainsFunc(o.Outbounds, func(it box.Outbound) bool {
		balancer, isBalancer := it.Options.(*BalancerOutboundOptions)
		return isBalancer && slices.Contains(balancer.StickyHashOrDefault(), StickyProcess)
	})
}

// checkTags refuses tags that exist twice, as sing-box does (S1.2).
func (o *Options) checkTags() error {
	var inbounds, outbounds, providers, clients []string
	for i, it := range o.Inbounds {
		inbounds = append(inbounds, tagOr(it.Tag, i))
	}
	for i, it := range o.Outbounds {
		outbounds = append(outbounds, tagOr(it.Tag, i))
	}
	for i, it := range o.Endpoints {
		outbounds = append(outbounds, tagOr(it.Tag, i))
	}
	for i, it := range o.CertificateProviders {
		providers = append(providers, tagOr(it.Tag, i))
	}
	for _, it := range o.HTTPClients {
		if it.Tag == "" {
			return E.New("http_clients: tag: missing")
		}
		clients = append(clients, it.Tag)
	}
	for _, list := range []struct {
		kind string
		tags []string
	}{
		{"inbound", inbounds}, {"outbound or endpoint", outbounds}, {"certificate provider", providers}, {"http client", clients},
	} {
		seen := make(map[string]bool, len(list.tags))
		for _, tag := range list.tags {
			if seen[tag] {
				return E.New("tag: found ", strconv.Quote(tag), " twice; allowed: one ", list.kind, " of a tag")
			}
			seen[tag] = true
		}
	}
	return nil
}

// tagOr is the tag by which sing-box knows an entry: the written one, or its place in the list.
func tagOr(tag string, index int) string {
	if tag == "" {
		return F.ToString(index)
	}
	return tag
}

var (
	outboundPath = regexp.MustCompile(`^outbounds\[(\d+)\]`)
	unknownField = regexp.MustCompile(`(monitoring\.)?[^.:]+: json: unknown field "(.*)"$`)
)

// explain adds to a decoder's error what a person needs: the type and tag of an outbound of which it tells only the
// place in the list, for nobody counts to 137, and the fields that our objects have where one is unknown.
func explain(ctx context.Context, content []byte, err error) error {
	unknown := unknownField.FindStringSubmatch(err.Error())
	inMonitoring := unknown != nil && unknown[1] != ""
	path := outboundPath.FindStringSubmatch(err.Error())
	if path == nil {
		if inMonitoring {
			return withFields(err, unknown[2], reflect.TypeFor[MonitoringOptions]())
		}
		return err
	}
	var names struct {
		Outbounds []struct {
			Type string `json:"type"`
			Tag  string `json:"tag"`
		} `json:"outbounds"`
	}
	index, _ := strconv.Atoi(path[1])
	if json.UnmarshalContext(ctx, content, &names) != nil || index >= len(names.Outbounds) {
		return err
	}
	outbound := names.Outbounds[index]
	if outbound.Type == TypeBalancer && unknown != nil {
		options := reflect.TypeFor[BalancerOutboundOptions]()
		if inMonitoring {
			options = reflect.TypeFor[MonitoringOptions]()
		}
		err = withFields(err, unknown[2], options)
	}
	return E.Cause(err, outboundName(outbound.Type, tagOr(outbound.Tag, index)))
}

// withFields adds the fields that an object has to the error of one that it has not.
func withFields(err error, found string, options reflect.Type) error {
	var fields []string
	for field := range options.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		fields = append(fields, name)
	}
	return E.New(err, "; allowed: ", strings.Join(fields, ", "), didYouMean(found, fields))
}

func outboundName(kind, tag string) string {
	return F.ToString("outbound/", kind, "[", tag, "]")
}
