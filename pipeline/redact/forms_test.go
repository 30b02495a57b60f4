package redact

// passwordForms put a password behind a name. ⏎ is the end of a line.
const passwordForms = `
DB_PASSWORD=%s
⏎DB_PASSWORD=%s⏎DEBUG=1⏎
⏎export PGPASSWORD="%s"⏎
⏎MYSQL_PWD=%s⏎
password = "%s"
passwd: '%s'
self.password = '%s'
DB_PASSWORD: str = "%s"
password: Optional[str] = '%s'
PASSWORD = b"%s"
connect(host="db", user="app", password="%s", port=5432)
{"user": "app", "password": "%s"}
{'user': 'app', 'password': '%s'}
"password": "%s",
⏎  password: "%s"⏎
⏎  password: %s⏎  user: app⏎
('DB_PASSWORD', '%s')
[('USER', 'app'), ('DB_PASSWORD', '%s')]
environ({'HOME': '/root', 'DB_PASSWORD': '%s'})
os.environ["DB_PASSWORD"] = "%s"
os.environ.setdefault("DB_PASSWORD", "%s")
os.getenv("DB_PASSWORD", "%s")
monkeypatch.setenv("DB_PASSWORD", "%s")
tool --password %s --verbose
tool --password=%s
tool --db-password '%s'
["--password", "%s"]
curl -u admin:%s https://example.org/
curl --user "admin:%s" https://example.org/
⏎machine example.org⏎  login me⏎  password %s⏎
machine example.org login me password %s
passphrase=%s
passphrase: "%s"
pwd=%s
"source": ["PASSWORD = \"%s\"\n"]
"{\"password\": \"%s\"}"
"{\\\"password\\\": \\\"%s\\\"}"
Server=db;User Id=sa;Password=%s;Encrypt=true
define('DB_PASSWORD', '%s');
<password>%s</password>
assert password == "%s"
-password = '%s'
+    "password": "%s",
password := "%s"
var password string = "%s"
String password = "%s";
const password = '%s';
const password: string = "%s";
:password => "%s",
spring.datasource.password=%s
sshpass -p '%s' ssh host
mysql -u root -p%s shop
requests.get(url, auth=("admin", "%s"))
HTTPBasicAuth('admin', '%s')
net use Z: \\srv\share %s /user:joe
net user joe %s /add
mysqladmin -u root password %s
smtp.login(user, "%s")
User.objects.create_user('joe', 'joe@example.org', '%s')
digest.set_password(user, realm, "%s")
My password for the staging box is "%s", please do not share it.
I set the admin password to %s for now.
Password for user joe: %s
Use user admin and password %s to log in.
log in with joe / %s
DriverManager.getConnection(url, "sa", "%s");
public string Password { get; set; } = "%s";
az keyvault secret set --vault-name v --name db --value %s
dotnet user-secrets set "Db:Password" "%s"
{user_name: "joe", pass_word: "%s"}
username joe privilege 15 password 0 %s
.basic_auth("joe", Some("%s"))
cy.get('#password').type('%s')
{'user': 'joe', 'pw': '%s'}
ftp = FTP('ftp.example.org', 'joe', '%s')
http -a joe:%s https://api.example.org
etcdctl --user root:%s get x
beeline -u jdbc:hive2://h -n joe -p %s
wpa_passphrase home %s
isql dsn joe %s
mc alias set local http://minio:9000 minio %s
poetry config http-basic.internal joe %s
rclone config create nas sftp host h user joe pass %s
tacacs-server key %s
client.username_pw_set("joe", "%s")
$ua->credentials("h:80", "realm", "joe", "%s");
Credentials::new("joe".into(), "%s".into())
CREATE USER app IDENTIFIED BY '%s';
ALTER USER app WITH PASSWORD '%s';
- name: DB_PASSWORD⏎  value: "%s"
{"name": "DB_PASSWORD", "value": "%s"}
ENV DB_PASSWORD %s
| password | %s |
password='%s'
Settings(host='db', password='%s', port=1)
redis://:%s@cache:6379/0
postgresql+psycopg2://app:%s@db.local/shop
password="""%s"""
client_secret: %s
_password=%s
setPassword("%s")
docker login -u me -p %s registry.example.org
localhost:5432:shop:app:%s
variable "db_password" { default = "%s" }
<property name="connection.password">%s</property>
<password type="string">%s</password>
<key>password</key>⏎<string>%s</string>
<name>db.password</name><value>%s</value>
- Name: DB_PASSWORD⏎  Value: "%s"
{"ParameterKey": "DBPassword", "ParameterValue": "%s"}
{"name": "DB_PASSWORD", "type": "plain", "value": "%s"}
process.env.DB_PASSWORD || '%s'
os.environ.get("DB_PASSWORD") or "%s"
getenv('DB_PASSWORD') ?: '%s'
std::env::var("DB_PASSWORD").unwrap_or("%s".to_string())
let password: String = String::from("%s");
char password[] = "%s";
NSString *password = @"%s";
client.login("bob", "%s")
new UsernamePasswordCredentials("bob", "%s")
DriverManager.getConnection("jdbc:mysql://db/shop", "bob", "%s")
ssh-keygen -N "%s" -f key
lftp -u bob,%s ftp.example.org
twine upload -u bob -p %s dist/*
echo "bob:%s" | chpasswd
nmcli dev wifi connect Home password %s
`

// keyForms put a generated value behind the name of a key or a token.
const keyForms = `
Cookie: sessionid=%s; theme=dark
Set-Cookie: session=%s; Path=/; HttpOnly
sonar.login=%s
cargo login %s
conda token set %s
poetry config pypi-token.pypi %s
wrangler secret put API_TOKEN <<< %s
wg set wg0 private-key <(echo %s)
API_KEY=%s
⏎export OPENAI_API_KEY=%s⏎
api_key = "%s"
API_KEY: str = "%s"
API_KEY = b'%s'
"api_key": "%s"
{'apiKey': '%s', 'n': 1}
"source": ["API_KEY = \"%s\"\n"]
('API_KEY', '%s')
setdefault("API_KEY", "%s")
tool --api-key %s
tool --token=%s
X-Api-Key: %s
-H "X-Auth-Token: %s"
Authorization: Bearer %s
'Authorization': 'Bearer %s'
Authorization: token %s
"Authorization": "Token %s"
?access_token=%s&page=2
https://example.org/v1?api_key=%s
https://%s@github.com/a/b
//registry.example.org/:_authToken=%s
AccountKey=%s;EndpointSuffix=core.windows.net
AWS_SECRET_ACCESS_KEY=%s
aws_secret_access_key = %s
SECRET_KEY = '%s'
secret_key_base: %s
auth_token: %s
<add key="ApiKey" value="%s" />
headers = {"x-api-key": "%s"}
client = Client(api_key="%s")
refreshToken: '%s',
private_token=%s
HF_TOKEN=%s
JWT_SECRET="%s"
aws configure set aws_secret_access_key %s
npm config set //registry.example.org/:_authToken %s
git config --global github.token %s
gh secret set NPM_AUTH --body "%s"
jwt.sign(payload, "%s")
ENCRYPTION_KEY=%s
`

// lookAlikes look like secrets and are none; UUID, SHA1, SHA256, MD5 and B64 stand for
// such values.
const lookAlikes = `
Set the password to None to disable login.
atexit2.register(print, "atexit2")
2 GiB, pass force_zip64 to use the ZIP64 format, which can handle large
state_dict key: layer4.2.bn3.running_var
"resumeToken": "B64"
sonar.projectKey=B64
password for user joe42 is missing
The password hash uses 100000 rounds.
password1 = cleaned.get("password1")
login page v2 is ready
diff <(echo a) <(echo configuration-of-the-second)
<<<<<<< HEAD
curl https://example.org/a-u b:c
Cookie: theme=dark; lang=en
id = "UUID"
request_id=UUID
idempotency_key=UUID
idempotency_key = "B64"
Idempotency-Key: UUID
next_page_token = "B64"
nextPageToken: "B64"
page_token=B64
continuation_token: B64
sync_token = 'B64'
public_key = "B64"
PUBLIC_KEY=B64
publicKey: 'B64',
primary_key=customer_id_2024_north
primary_key = "order_line_2_id"
foreign_key='customer_2_id'
partition_key = "tenant_42_eu_west_1"
cache_key = "MD5"
cache_key = f'{module}.{name}'
sort_key: "created_at_utc8_desc"
commit SHA1
"sha256": "SHA256"
integrity sha512-B64
etag: "MD5"
key = "SHA1"
md5sum MD5  file.txt
pip install x --hash=sha256:SHA256
image@sha256:SHA256
ssh-rsa AAAAB3NzaC1yc2EB64 me@host
SHA256:B64 me@host (ED25519)
password = getpass()
password = getpass.getpass("Password: ")
token = os.environ["X"]
token = os.environ.get("GITHUB_TOKEN")
token = os.getenv("TOKEN")
self.password = password
self._password = self._read_password2(path)
password = self.password
api_key=settings.API_KEY,
api_key = config["api_key"]
client = Client(api_key=api_key, token=token)
password: str
password: str = ""
password: Optional[str] = None
api_key: str | None = None
token: Token,
def login(self, user: str, password: str) -> bool:
def check_password(password, hashed_password):
password=None
password = ""
PASSWORD=
DB_PASSWORD=${DB_PASSWORD}
DB_PASSWORD=$DB_PASSWORD
password: {{ db_password }}
password: <password>
api_key = "your-api-key-here"
api_key = "YOUR_API_KEY"
API_KEY=changeme
password = "changeme"
password: xxxxxxxx
token = "xxxxxxxxxxxxxxxxxxxx"
api_key = "<your-api-key>"
"api_key": "REPLACE_ME_WITH_YOUR_KEY"
password = "********"
SecretStr('**********')
secret = "placeholder"
sk-your-key-here-sk-your-key-here
OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
AKIAXXXXXXXXXXXXXXXX
password = os.environ["DB_PASSWORD"]
tests/test_tokens.py::test_token_is_refreshed_2 PASSED
test_password_reset_token_v2 FAILED
FAILED tests/test_auth.py::TestToken::test_api_key_2
tokens: 12345678901234567890
max_tokens=1000000000
total_tokens = 4096
token = tokenizer.next_token_from_stream
tok = Token(type=TokenType.NAME2, value='x')
pad_token = "<pad>"
eos_token="</s>"
for key, value in d.items():
key=lambda item: item.value
sorted(rows, key=by_column_2_then_name)
d[key] = value2
KeyError: 'user_2_name'
keyboard = "us-intl-99-layout"
monkey = "see_no_evil_123456"
password_hash = "$2b$12$B64"
password_file: /run/secrets/db_password_1
secret_name: prod/db-main-2
SECRET_ARN=arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-Ab1c2D
key_id = "B64"
token_type: bearer
token_url = https://example.org/oauth2/token
Authorization: Bearer <token>
Authorization: Bearer ${TOKEN}
Authorization: Bearer $TOKEN
"Authorization": f"Bearer {token}"
curl -u user:$PASSWORD https://example.org
curl -u "$USER:$TOKEN" https://example.org
mysql -u root -p shop
tool --password-file /run/secret
tool --token "$TOKEN"
postgres://user:${PASSWORD}@host/db
postgres://user:password@localhost/db
https://example.org:8080/a@b
http://user@example.org/path
The password must contain at least 8 characters.
Enter your password: 
password is required
Invalid password: try again
"password": "Enter your password",
"password": {"type": "string", "minLength": 8}
passwords = ["one", "two"]
secrets = load_secrets("prod2")
pass
bypass = "all-of-it-2"
compass: N45E123
author = "J. R. R. 1954"
auth = authenticate(user2)
authors: [a1, b2]
credentials = service_account.Credentials.from_service_account_file(path)
with open(key_path2) as f:
if token == "(":
while token != 'END2':
raise AuthError("token expired")
x = data["keys"][0]
@pytest.mark.parametrize("key,value", [("a1", 1)])
class="token keyword2"
<input type="password" name="password1">
assert response.json()["token"]
print(f"password={password}")
log("token=%s", token)
pk_key = models.AutoField(primary_key=True)
UUID SHA1 MD5
s.setUserArenaChunkToFault()
sk-estimator-doc-link and sk-toggleable__label-arrow
import secrets; secrets.token_hex(32)
Keys: a1b2c3
key: value2
{'key': 'value1'}
Key=F5
<attribute name="publicKeyToken">b77a5c561934e089</attribute>
<token kind="identifier2">foo_bar_2</token>
key = "2024-01-31T10:00:00Z/eu-west-1"
token = peek() or "end_of_file_2"
aws configure set region eu-west-1
git config --global user.name bob2
def check(password): "docstring 2"
Secret "db-creds-3" created in namespace prod
login("bob", "password")
`
