package affinity

import (
	"strings"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

const (
	// rememberedHosts is a power of two a little above the number of keys that a sticky group remembers (S4.3). With
	// names of usual length it comes to some hundred kilobytes.
	rememberedHosts = 1024
	// longestName is the longest name that DNS allows; what is longer is not worth the memory.
	longestName = 253
)

// remembered keeps what the latest hosts stand for, each in the place that its hash names, where it overwrites the one
// before. The public suffix list cannot be asked without an allocation, and people visit the same hosts again and
// again. What is remembered never changes, so this is only seen in the time that it takes.
var remembered [rememberedHosts]atomic.Pointer[rememberedHost]

type rememberedHost struct {
	host string
	site site
}

func siteOf(host string) site {
	if host == "" {
		return site{}
	}
	if len(host) > longestName {
		return resolve(host)
	}
	slot := &remembered[xxhash.Sum64String(host)%rememberedHosts]
	if known := slot.Load(); known != nil && known.host == host {
		return known.site
	}
	// The host may be a piece of something large, such as a sniffed packet, which must not stay in memory with it.
	host = strings.Clone(host)
	known := &rememberedHost{host: host, site: resolve(host)}
	slot.Store(known)
	return known.site
}
