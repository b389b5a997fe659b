package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Clash asks a program's Clash API, as a dashboard does.
type Clash struct {
	// Controller is the address, for `external_controller`.
	Controller string
}

// NewClash returns one for a configuration that is still to be written.
func NewClash(owner Owner) *Clash {
	owner.Helper()
	return &Clash{Controller: Loopback(FreePort(owner))}
}

// Enable turns the API on in a configuration that has `experimental`.
func (c *Clash) Enable(configuration JSON) JSON {
	configuration["experimental"].(JSON)["clash_api"] = JSON{"external_controller": c.Controller}
	return configuration
}

// ask makes a request and decodes the answer, if one is expected.
func (c *Clash) ask(method, path, body string, answer any) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+c.Controller+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode >= 300:
		return fmt.Errorf("%s: %s", response.Status, content)
	case answer == nil:
		return nil
	}
	return json.Unmarshal(content, answer)
}

// ClashProxy is what the API says of an outbound.
type ClashProxy struct {
	Type    string   `json:"type"`
	Now     string   `json:"now"`
	All     []string `json:"all"`
	History []struct {
		Delay int `json:"delay"`
	} `json:"history"`
}

// Delay is the delay that is shown, 0 for none.
func (p ClashProxy) Delay() int {
	if len(p.History) == 0 {
		return 0
	}
	return p.History[len(p.History)-1].Delay
}

// Proxy returns what the API says of an outbound.
func (c *Clash) Proxy(owner Owner, tag string) (proxy ClashProxy) {
	owner.Helper()
	if err := c.ask(http.MethodGet, "/proxies/"+url.PathEscape(tag), "", &proxy); err != nil {
		owner.Errorf("ask for %q: %v", tag, err)
	}
	return proxy
}

// TestProxy has an outbound tested with a URL, as a person does who clicks on it.
func (c *Clash) TestProxy(tag, link string) error {
	return c.ask(http.MethodGet, "/proxies/"+url.PathEscape(tag)+"/delay?timeout=2000&url="+url.QueryEscape(link), "", nil)
}

// TestGroup has a group tested and returns the delays by tag.
func (c *Clash) TestGroup(owner Owner, tag string) (delays map[string]int) {
	owner.Helper()
	query := fmt.Sprintf("/delay?timeout=%d", (2 * time.Second).Milliseconds())
	if err := c.ask(http.MethodGet, "/group/"+url.PathEscape(tag)+query, "", &delays); err != nil {
		owner.Errorf("test %q: %v", tag, err)
	}
	return delays
}

// Select has a selector select a member.
func (c *Clash) Select(owner Owner, selector, member string) {
	owner.Helper()
	body, _ := json.Marshal(map[string]string{"name": member})
	if err := c.ask(http.MethodPut, "/proxies/"+url.PathEscape(selector), string(body), nil); err != nil {
		owner.Errorf("select %q: %v", member, err)
	}
}
