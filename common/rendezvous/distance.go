package rendezvous

import "math/bits"

// fractionBits is the number of binary places of a distance. The greatest distance, 64, then just fits into 64 bits.
const fractionBits = 57

// log2OfE is log2(e) with 63 binary places, rounded down.
const log2OfE = 0xb8aa3b295c17f0bb

// distanceOf returns -log2(score/2⁶⁴) with fractionBits binary places, for a score of 0 as for 1.
//
// It squares the mantissa again and again; each time that it overflows into the next power of two, a one is the next
// binary place of the logarithm. Every step rounds down, so the result is never below the true value and exceeds it by
// less than 2⁻⁵⁶: the first 57 places, and the squares' lost places, which weigh half as much with every step. A
// greater score never has a greater distance, as rounding down keeps the order of mantissas; so where weights are
// equal, distances order members as scores do.
func distanceOf(score uint64) uint64 {
	score = max(score, 1)
	zeros := bits.LeadingZeros64(score)
	mantissa := score << zeros
	var fraction uint64
	for range fractionBits {
		high, low := bits.Mul64(mantissa, mantissa)
		overflow := high >> 63
		// Without overflow the square has one leading zero bit: bring the mantissa's leading one back to the top.
		mantissa = high<<(1-overflow) | low>>63&(1-overflow)
		fraction = fraction<<1 | overflow
	}
	return uint64(zeros+1)<<fractionBits - fraction
}

// leastDistanceOf returns, by one multiplication, a bound that distanceOf never falls below: -ln(u) ≥ 1-u.
func leastDistanceOf(score uint64) uint64 {
	high, _ := bits.Mul64(-max(score, 1), log2OfE)
	return high >> (63 - fractionBits)
}
