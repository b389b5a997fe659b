package option

import (
	"regexp"
	"slices"
	"strconv"

	E "github.com/sagernet/sing/common/exceptions"
)

// Node is an outbound or endpoint as far as groups are concerned: its tag and the tags that it leads to, as a group's
// members or as its detour.
type Node struct {
	Tag     string
	LeadsTo []string
}

// Members is what a group's `outbounds`, `include` and `exclude` come to.
type Members struct {
	Tags []string
	// Unmatched are patterns that match nothing, as field: pattern.
	Unmatched []string
}

// ExpandMembers returns the members of the group tag: the named ones, then those that include matches, in the order of
// nodes, never the group itself nor what leads to it, without those that exclude matches (SPEC S1.1, S1.6). It is an
// error if no member is left, or if a pattern is not valid RE2.
func ExpandMembers(nodes []Node, tag string, outbounds, include, exclude []string) (Members, error) {
	members := Members{Tags: slices.Clone(outbounds)}
	leadsHere := leadingTo(nodes, tag)
	for _, pattern := range include {
		expression, err := compile("include", pattern)
		if err != nil {
			return Members{}, err
		}
		matched := false
		for _, node := range nodes {
			if !expression.MatchString(node.Tag) || leadsHere[node.Tag] {
				continue
			}
			matched = true
			if !slices.Contains(members.Tags, node.Tag) {
				members.Tags = append(members.Tags, node.Tag)
			}
		}
		if !matched {
			members.Unmatched = append(members.Unmatched, "include: "+strconv.Quote(pattern))
		}
	}
	if len(include) > 1 {
		sortIncluded(members.Tags[len(outbounds):], nodes)
	}
	for _, pattern := range exclude {
		expression, err := compile("exclude", pattern)
		if err != nil {
			return Members{}, err
		}
		before := len(members.Tags)
		members.Tags = slices.DeleteFunc(members.Tags, expression.MatchString)
		if len(members.Tags) == before {
			members.Unmatched = append(members.Unmatched, "exclude: "+strconv.Quote(pattern))
		}
	}
	switch {
	case len(members.Tags) > 0:
		return members, nil
	case len(members.Unmatched) > 0:
		return Members{}, E.New(members.Unmatched[0], " matches no outbound and no endpoint, and nothing else gives the group a member")
	case len(exclude) > 0:
		return Members{}, wrong("exclude", quoted(exclude), "patterns that leave at least one member")
	default:
		return Members{}, wrong("outbounds", "an empty list", "at least one member")
	}
}

func compile(field, pattern string) (*regexp.Regexp, error) {
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return nil, wrong(field, strconv.Quote(pattern), "an RE2 pattern (", err, ")")
	}
	return expression, nil
}

// sortIncluded puts what several patterns found into configuration order.
func sortIncluded(tags []string, nodes []Node) {
	order := make(map[string]int, len(nodes))
	for i, node := range nodes {
		order[node.Tag] = i
	}
	slices.SortFunc(tags, func(a, b string) int { return order[a] - order[b] })
}

// leadingTo returns a tag and everything that leads to it at any depth.
func leadingTo(nodes []Node, tag string) map[string]bool {
	sources := make(map[string][]string, len(nodes))
	for _, node := range nodes {
		for _, target := range node.LeadsTo {
			sources[target] = append(sources[target], node.Tag)
		}
	}
	found := map[string]bool{tag: true}
	for queue := []string{tag}; len(queue) > 0; queue = queue[1:] {
		for _, source := range sources[queue[0]] {
			if !found[source] {
				found[source] = true
				queue = append(queue, source)
			}
		}
	}
	return found
}
