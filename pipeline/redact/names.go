package redact

// Names of secrets: MY_API_KEY, dbPassword, "client-secret".

import (
	"slices"
	"strings"
)

// strength says which values of a name are secrets. A stronger name makes more of them secret, so
// the constants are in this order.
type strength int

const (
	none    strength = iota
	loose            // names such as "key": only generated values are secret
	bare             // tokens of any kind: generated values and hashes
	special          // API keys and tokens: generated values, hashes and UUIDs
	strong           // passwords: any value that a person may choose
)

const maxName = 80 // bytes of a name

// tailWords holds words that may follow the word that determines the strength of a name.
var tailWords = wordSet("base base64 b64 value val v prod production dev development test testing stage staging live sandbox old new current default raw plain plaintext cleartext text string str env confirmation confirm encoded ro rw admin root data input field")

var (
	// Names of passwords: endings, whole words, and words that only look like one.
	strongEnd  = []string{"assword", "passwd", "passphrase", "passwort", "passcode", "pwd", "pswd", "secret", "passw", "pass"}
	strongWord = wordSet("pw psw bindpw rootpw psk")
	noPass     = wordSet("bypass expass buypass compass encompass surpass overpass trespass onepass twopass firstpass secondpass singlepass multipass pass1 subpass renderpass lowpass highpass bandpass underpass forwardpass backpass")

	// Words before "key" or "token", or joined with it, that decide whether the value is a secret.
	noKeys     = wordSet("mon tur hot don whis joc hoc key pass has no")
	secretKeys = wordSet("validation decryption decrypt machine mac connection pass passphrase deploy license product activation wifi api apikey secret access private priv auth encryption encrypt enc signing sign signature master account shared sharedaccess storage admin subscription license hmac aes crypt crypto consumer service client rest deploy ssh bearer root webhook jwt fernet application app write server live developer partner merchant integration security connection ingestion functions host symmetric session cookie")
	otherKeys  = wordSet("gpg pgp primary project foreign public pub idempotency partition sort cache page next continuation cursor pagination row object dict hash index unique group order orderby lookup search translation i18n message config setting settings json map s3 bucket composite natural surrogate candidate field column col param query header keyboard hot shortcut arrow enter escape sorting clustering range shard routing dedup dedupe deduplication request registry reg state storagekey react item list meta label annotation tag metric node data model entity resource image layer blob file path dataset feature attr attribute prop property variable var option lang locale locales topic event msg record lock mutex sentinel hashed publishable site anon verify verification trusted sig kms arn finger fingerprint host_public ed25519 rsa")
	otherToken = wordSet("next starting resume page pad eos bos sep cls mask unk sync continuation max min num start end stop special image current last prev previous first word total input output prompt completion cached reasoning pagination cursor nextpage pagetoken sub text lexer parser syntax peek expected punctuation operator keyword identifier id_type design begin close open string comment number whitespace eof idempotency delta dedup etag sequence client_request clientrequest")
	secretWord = wordSet("access auth api bearer refresh session secret personal private bot deploy user oauth oauth2 jwt pat registry upload publish gh github gitlab slack npm pypi hf huggingface telegram discord service account admin root vault ci job security app application device csrf xsrf id")
)

// nameBounds returns the bounds of the name that contains the word text[from:to].
func nameBounds(text string, from, to int) (int, int) {
	least, most := max(0, from-maxName), min(len(text), to+maxName/2)
	for from > least && (alnum(text[from-1]) || strings.IndexByte("_-.", text[from-1]) >= 0) {
		from--
	}
	if from > 0 && text[from-1] == '\\' && strings.IndexByte("nrt", text[from]) >= 0 { // the letter belongs to an escape sequence, such as \n
		from++
	}
	for to < most && (alnum(text[to]) || text[to] == '_' || text[to] == '-' && to+1 < most && alnum(text[to+1])) {
		to++
	}
	return from, to
}

// splitName returns the words of a name in lower case, without digits.
func splitName(name string) (words []string) {
	begin := -1
	flush := func(end int) {
		if begin >= 0 {
			words = append(words, strings.ToLower(name[begin:end]))
		}
		begin = -1
	}
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		upper := 'A' <= c && c <= 'Z'
		switch {
		case !letter:
			flush(i)
		case begin < 0:
			begin = i
		case upper && (name[i-1] >= 'a' || i+1 < len(name) && 'a' <= name[i+1] && name[i+1] <= 'z' && i-begin > 1):
			flush(i)
			begin = i
		}
	}
	flush(len(name))
	return words
}

func nameStrength(name string) strength {
	words := splitName(name)
	for len(words) > 1 && tailWords[words[len(words)-1]] {
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return none
	}
	last, before := words[len(words)-1], ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	switch {
	case slices.Contains(words, "hashed"):
		return none
	case last == "sessionid":
		return special
	case strongWord[last] || before == "pass" && (last == "word" || last == "phrase" || last == "code") || slices.ContainsFunc(strongEnd, func(end string) bool { return strings.HasSuffix(last, end) }):
		if noPass[last] {
			return none
		}
		return strong
	case last == "signingkey": // a setting of git that holds the ID of a key
		return none
	case strings.HasSuffix(last, "key"):
		if before == "" || last != "key" {
			before = strings.TrimSuffix(last, "key")
		}
		switch {
		case otherKeys[before] || noKeys[before]:
			return none
		case slices.Contains(words, "secret") || slices.Contains(words, "password") || before == "shared" && words[0] == "pre" || before == "preshared":
			return strong
		case secretKeys[before] || strings.HasSuffix(before, "api") || strings.HasSuffix(before, "secret") || strings.HasSuffix(before, "access"):
			return special
		case len(words) > 1 && strings.ToUpper(name) == name: // a constant or an environment variable
			return bare
		}
		return loose
	case strings.HasSuffix(last, "token"):
		if last != "token" {
			before = strings.TrimSuffix(last, "token")
		}
		switch {
		case slices.Contains(words, "public") || otherToken[before] || len(words) > 2 && otherToken[words[len(words)-3]] && before == "page":
			return none
		case secretWord[before] || strings.HasSuffix(before, "auth") || strings.HasSuffix(before, "access"):
			return special
		}
		if len(words) > 1 && strings.ToUpper(name) == name {
			return special
		}
		return bare
	case before == "amz":
		return none
	case last == "authorization" || last == "credential" || last == "credentials" || last == "creds" || last == "cred" || last == "pat":
		return special
	case last == "auth":
		if name == "_auth" || len(words) > 1 && strings.ToUpper(name) == name {
			return special
		}
		return loose
	}
	return none
}
