package redact

// lookAlikes lists texts that resemble secrets but must not be redacted, one per line. The test
// replaces UUID, SHA1, SHA256, MD5 and B64 with generated values, and ⏎ with a line break.
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
"sha256": "4b1d52f0c1a96e7d83b2f4a5906c7e1d2f3a4b5c6d7e8f90123456789abcdef0"
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
key=MD5
cache key=MD5
cache_key=SHA1
key: SHA256
"key": "SHA256"
Cache hit for key SHA1
sha256=SHA256
sha256: SHA256
ETag=MD5
commit: SHA1
revision=SHA1
digest = SHA256
checksum: SHA256
md5 = "MD5"
hash=SHA1
"hash": "SHA256"
build_id=MD5
trace_id=MD5
span_id=MD5
request-id: MD5
token_hash = "SHA256"
password_hash: SHA256
public_key: SHA256
object_key=SHA1
cache-key: linux-SHA256
idempotency_key=MD5
restore-keys: npm-SHA1
fingerprint=SHA1
login("joe", password)
login(user, password)
login(username="joe", password=password)
auth=("user", "pass")
auth=("username", "password")
` + moreLookAlikes
