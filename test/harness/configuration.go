package harness

import "maps"

// BalancerTag is the tag of the balancer in a Configuration.
const BalancerTag = "balancer"

// Configuration returns one with a mixed inbound at a port and a balancer that takes everything. The balancer has the
// fields given, and if they name no `outbounds`, all members. There is no `experimental`.
func Configuration(port int, balancer JSON, members ...JSON) JSON {
	group := JSON{"type": "balancer", "tag": BalancerTag}
	if balancer["outbounds"] == nil {
		var tags []any
		for _, member := range members {
			tags = append(tags, member["tag"])
		}
		group["outbounds"] = tags
	}
	maps.Copy(group, balancer)
	return JSON{
		"log":       JSON{"level": "debug"},
		"inbounds":  []JSON{{"type": "mixed", "tag": "mixed", "listen": "127.0.0.1", "listen_port": port}},
		"outbounds": append([]JSON{group}, members...),
		"route":     JSON{"final": BalancerTag},
	}
}

// Monitoring returns test settings for a test: a local address, short times, no chance. Fields given count instead.
func Monitoring(target *Target, fields JSON) JSON {
	settings := JSON{
		"urls": []string{target.TestURL}, "interval": "1s", "url_test_timeout": "2s", "debounce_window": "50ms", "jitter": 0,
	}
	maps.Copy(settings, fields)
	return settings
}

// Monitored returns a configuration with `experimental.monitoring`.
func Monitored(configuration, monitoring JSON) JSON {
	configuration["experimental"] = JSON{"monitoring": monitoring}
	return configuration
}
