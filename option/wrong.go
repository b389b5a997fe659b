package option

import (
	"strconv"
	"strings"

	E "github.com/sagernet/sing/common/exceptions"
	F "github.com/sagernet/sing/common/format"
)

// wrong is the error of a field with a value that is not allowed (SPEC S1.2).
func wrong(field string, found any, allowed ...any) error {
	return E.New(append([]any{field, ": found ", found, "; allowed: "}, allowed...)...)
}

// wrongWord is the error of a field that takes one of some words.
func wrongWord(field, found string, words []string) error {
	return wrong(field, strconv.Quote(found), strings.Join(words, ", "), didYouMean(found, words))
}

// didYouMean offers the word that was probably meant, if there is one.
func didYouMean(found string, words []string) string {
	best, distance := "", 3
	for _, word := range words {
		if d := editDistance(strings.ToLower(found), strings.ToLower(word)); d < distance && d < len(word) {
			best, distance = word, d
		}
	}
	if best == "" {
		return ""
	}
	return F.ToString("; did you mean ", strconv.Quote(best), "?")
}

// editDistance counts the letters to insert, delete or replace (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substituted := diagonal
			if a[i] != b[j] {
				substituted++
			}
			diagonal = row[j+1]
			row[j+1] = min(substituted, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
