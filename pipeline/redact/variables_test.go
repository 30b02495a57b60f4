package redact

import (
	"slices"
	"testing"
)

func TestSecretsInEnvironment(t *testing.T) {
	got := Environment([]string{
		"OPENAI_API_KEY=sk-1234567890", "AWS_SECRET_ACCESS_KEY=abc/def", "HF_TOKEN=hf-1", "DB_PASSWORD_2=xY9-zzzz", "apiKey=k1-k1-k1-k1", "GITHUB_PAT=t0ken-1",
		"HOME=/root", "SSH_KEY=/root/.ssh/id", "PGPASSWORD=postgres", "MONKEY=see-no-evil-1", "MAX_TOKENS=4096", "PIN_SECRET=1234567890", "KEYBOARD=us-intl-99", "EMPTY_TOKEN=",
		"DB_PASS=f8-z", "MYSQL_PWD=f9-z", "PWD=/work", "BYPASS=all-of-it", "SECRET_OF_SHOP=q7Zk1xVb93Lm", "TOKEN_TYPE=oauth2-client", "AWS_SECRET_NAME=prod/db-main",
		"DATABASE_URL=postgres://app:z%2Fx9-yy@db/app?p=1", "HTTPS_PROXY=http://me:postgres@proxy:3128", "HOME_PAGE=http://example.org:80/a@b",
	})
	want := []string{"abc/def", "f8-z", "f9-z", "hf-1", "k1-k1-k1-k1", "q7Zk1xVb93Lm", "see-no-evil-1", "sk-1234567890", "t0ken-1", "xY9-zzzz", "z%2Fx9-yy", "z/x9-yy"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A MinHash signature is not text. If it looks like a key by chance, the episode must not be
// withheld.
func TestSignaturesAreNotSearched(t *testing.T) {
	type row struct {
		MinHash *string `col:"minhash_b64"`
		Text    string  `col:"text"`
	}
	chance := "AAAA+" + planted["google_key"] + "+AAA="
	if err := NewChecker(nil).Check("episode e1", row{MinHash: &chance}); err != nil {
		t.Error(err)
	}
	if err := NewChecker(nil).Check("episode e1", row{Text: chance}); err == nil {
		t.Error("the same key in a text was not found")
	}
}
