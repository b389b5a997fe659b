package balancer

// snapshot is the world that a connection sees: immutable, swapped as a whole behind an atomic pointer. Only the turns
// inside its pickers move.
type snapshot struct {
	pickers    [networks]picker
	reserves   bool
	members    []member
	carriesUDP bool
	shown      int
}
