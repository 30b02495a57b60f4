package cli

import "strings"

// variables lists the environment variables that the program and its libraries read, by
// purpose.
var variables = []struct {
	title string
	rows  [][2]string
}{
	{"Settings", [][2]string{
		{"TRACESMITH_SECTION__KEY", "Sets section.key, with two underscores between them: TRACESMITH_RUN__WORKERS=8 sets run.workers. The value is YAML. It wins over files; -p and flags win over it."},
	}},
	{"Secrets", [][2]string{
		{"OPENAI_API_KEY", "The key of the model server in the profile openai, which has llm.api_key: env:OPENAI_API_KEY. A setting that holds a secret can name any variable as env:NAME; without such a setting, tracesmith reads no key."},
		{"*_KEY, *_TOKEN, ...", "If the name says that a variable holds a secret (KEY, TOKEN, SECRET, PASSWORD and the like), tracesmith replaces its value in the texts that it records."},
	}},
	{"S3-compatible storage, as other AWS tools read them", [][2]string{
		{"AWS_ACCESS_KEY_ID", "The access key."},
		{"AWS_SECRET_ACCESS_KEY", "Its secret."},
		{"AWS_SESSION_TOKEN", "The token of temporary credentials."},
		{"AWS_PROFILE", "The profile in the files of the next two variables."},
		{"AWS_CONFIG_FILE", "The configuration file; default ~/.aws/config."},
		{"AWS_SHARED_CREDENTIALS_FILE", "The file of credentials; default ~/.aws/credentials."},
		{"AWS_REGION", "The region if s3.region is not set; default us-east-1."},
		{"AWS_CA_BUNDLE", "A PEM file of the CA that signed the server's certificate."},
	}},
	{"Network", [][2]string{
		{"HTTPS_PROXY, HTTP_PROXY", "The proxy for model servers, storage and downloads. MCP servers are reached without one."},
		{"NO_PROXY", "Hosts to reach without the proxy."},
		{"SSL_CERT_FILE, SSL_CERT_DIR", "Certificates of CAs to trust instead of the system's."},
	}},
	{"Docker and Kubernetes sandboxes", [][2]string{
		{"DOCKER_HOST", "The Docker daemon, if sandbox.with.host is not set."},
		{"DOCKER_TLS_VERIFY", "Any value: the client checks the daemon's certificate."},
		{"DOCKER_CERT_PATH", "The directory of ca.pem, cert.pem and key.pem."},
		{"DOCKER_API_VERSION", "The version of the daemon's API; default: the highest that both sides know."},
		{"DOCKER_CONFIG", "The directory of Docker contexts; default ~/.docker."},
		{"KUBECONFIG", "The kubeconfig, if sandbox.with.kubeconfig is not set; default ~/.kube/config."},
		{"KUBERNETES_SERVICE_HOST", "Set by Kubernetes, with KUBERNETES_SERVICE_PORT, in a pod: tracesmith then uses the cluster that it runs in."},
	}},
	{"Directories and programs", [][2]string{
		{"XDG_CACHE_HOME", "The parent of the cache directory tracesmith, which holds the guest, set-up results and unpacked tasks; default ~/.cache."},
		{"TMPDIR", "The directory of scratch files; default /tmp."},
		{"HOME", "The home directory, which ~ stands for."},
		{"PATH", "The directories of git, bwrap, python3, ssh and MCP servers."},
		{"PYENV_ROOT", "The directory of pyenv, for tasks that need another Python; default ~/.pyenv."},
		{"TRACESMITH_GUEST", "The helper program to start in sandboxes; default: the one that is built into tracesmith."},
	}},
	{"Terminal", [][2]string{
		{"PAGER", "The command through which show, stats and compare print on a terminal; default less. If it is empty or cat, they print directly."},
		{"NO_PAGER", "Any value: they print directly."},
		{"LESS", "The options of less; default FRX: it ends at once if all fits the screen, and shows colors."},
		{"NO_COLOR", "Any value: no colors."},
		{"CI", "Any value: progress is printed as plain lines."},
		{"TERM", "If it is dumb, progress is printed as plain lines, without a pager and colors."},
	}},
}

// variablesElsewhere is printed after the variables. It says what other programs see.
const variablesElsewhere = "Programs in a sandbox do not see the environment of tracesmith. " +
	"An MCP server gets PATH, HOME, LANG, TMPDIR and the variables that the configuration names."

func environmentTopic() string {
	var b strings.Builder
	b.WriteString("tracesmith reads these environment variables:\n\n")
	for _, group := range variables {
		b.WriteString(group.title + ":\n" + table(group.rows) + "\n")
	}
	b.WriteString(wrap(variablesElsewhere, 0))
	return b.String()
}
