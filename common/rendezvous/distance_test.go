package rendezvous

import (
	"math"
	"math/big"
	"slices"
	"testing"
)

// scores returns scores of all sizes in ascending order: random ones, powers of two and their neighbours.
func scores() []uint64 {
	list := []uint64{0, 1, math.MaxUint64}
	eachKey(2_000, func(key uint64) { list = append(list, key, key>>(key%64)) })
	for shift := range 64 {
		list = append(list, 1<<shift-1, 1<<shift, 1<<shift+1, -(1 << shift))
	}
	slices.Sort(list)
	return list
}

// trueDistance computes -log2(score/2⁶⁴) in units of 2⁻⁵⁷ by the series 2·atanh((1-m)/(1+m)) in 200-bit arithmetic.
func trueDistance(score uint64) *big.Float {
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(x) }
	logarithm := func(m *big.Float) *big.Float { // -ln(m), for m in [1/2, 1]
		z := new(big.Float).Quo(new(big.Float).Sub(number(1), m), new(big.Float).Add(number(1), m))
		square := new(big.Float).Mul(z, z)
		sum, power := number(0), new(big.Float).Copy(z)
		for i := 1; i < 140; i += 2 {
			sum.Add(sum, new(big.Float).Quo(power, number(float64(i))))
			power = new(big.Float).Mul(power, square)
		}
		return sum.Mul(sum, number(2))
	}
	mantissa := new(big.Float)
	exponent := number(0).SetUint64(max(score, 1)).MantExp(mantissa)
	distance := new(big.Float).Quo(logarithm(mantissa), logarithm(number(0.5)))
	distance.Add(distance, number(float64(64-exponent)))
	return distance.SetMantExp(distance, fractionBits)
}

func TestDistance_ErrorIsBelowTwoUnitsAndNeverNegative(t *testing.T) {
	worst := 0.0
	for _, score := range scores() {
		difference, _ := new(big.Float).Sub(number(distanceOf(score)), trueDistance(score)).Float64()
		worst = max(worst, difference)
		if difference < -1e-9 || difference >= 2 {
			t.Fatalf("score %#x: off by %v units of 2⁻⁵⁷", score, difference)
		}
	}
	t.Logf("greatest error: %.3f units of 2⁻⁵⁷", worst)
}

func number(x uint64) *big.Float {
	return new(big.Float).SetPrec(200).SetUint64(x)
}

func TestDistance_KeepsTheOrderOfScores(t *testing.T) {
	list := scores()
	for i := 1; i < len(list); i++ {
		if distanceOf(list[i]) > distanceOf(list[i-1]) {
			t.Fatalf("score %#x is farther than %#x", list[i], list[i-1])
		}
	}
}

func TestDistance_Ends(t *testing.T) {
	for _, it := range []struct{ score, distance uint64 }{
		{0, 64 << fractionBits},
		{1, 64 << fractionBits},
		{1 << 63, 1 << fractionBits},
		{math.MaxUint64, 1},
	} {
		if got := distanceOf(it.score); got != it.distance {
			t.Errorf("score %#x: %#x, want %#x", it.score, got, it.distance)
		}
	}
}

func TestDistance_LeastIsNeverMore(t *testing.T) {
	for _, score := range scores() {
		if least, distance := leastDistanceOf(score), distanceOf(score); least > distance {
			t.Fatalf("score %#x: the bound %#x is above the distance %#x", score, least, distance)
		}
	}
}
