package include_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"

	"tarazu/include"
	"tarazu/option"

	"github.com/sagernet/sing-box"
	"github.com/sagernet/sing/common/json"
	M "github.com/sagernet/sing/common/metadata"
)

// A box with a balancer, started from Go. The program that embeds it calls include.Context and is done.
func Example() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello")
	}))
	defer site.Close()

	ctx := include.Context(context.Background())
	options, err := json.UnmarshalExtendedContext[option.Options](ctx, []byte(`{
		"log": {"level": "error"},
		"outbounds": [
			{"type": "balancer", "tag": "proxy", "outbounds": ["one", "two"]},
			{"type": "direct", "tag": "one"}, {"type": "direct", "tag": "two"}
		],
		"experimental": {"monitoring": {"urls": "`+site.URL+`"}}
	}`))
	if err != nil {
		panic(err)
	}
	instance, err := box.New(box.Options{Context: ctx, Options: options.Box()})
	if err != nil {
		panic(err)
	}
	if err = instance.Start(); err != nil {
		panic(err)
	}
	defer instance.Close()

	proxy, _ := instance.Outbound().Outbound("proxy")
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return proxy.DialContext(ctx, network, M.ParseSocksaddr(address))
		},
	}}
	response, err := client.Get(site.URL)
	fmt.Println(response.Status, err)
	// Output: 200 OK <nil>
}
