package redact

// moreLookAlikes continues lookAlikes, the texts that resemble secrets but must not be redacted. That
// constant documents the format.
const moreLookAlikes = `connect(host, user, password)
connect("host", 8080, "localhost2")
connect("clicked", self.on_click2, "x")
page.fill("#username", "joe-2024")
page.fill("#search", "blue shoes 42")
page.fill("#password", "")
page.fill("#password", password)
driver.find_element(By.NAME, "q").send_keys("selenium 4")
driver.find_element(By.NAME, "username").send_keys("tomsmith77")
By.NAME, "password"
element.send_keys(Keys.RETURN)
expect(page).to_have_title("Login page 2")
ldap_bind($c, $dn, $password);
.basic("joe", password)
The password (see section 4.2) is optional
The password (8 characters) is too short
try admin / localhost
try /usr/lib/python3.11
log in with your account / SSO
log in with username and password1
creds: see vault
credentials: file:/etc/creds2.json
password for joe: required
pw reset email sent at 10:24
reg add HKLM\SOFTWARE\Foo /v Version /d 12.4.1
runas /user:joe notepad2.exe
ldappasswd -H ldap://host2 -D cn=admin
echo hello2world | grep -S x
echo "deb http://x.org/debian12 main" | sudo tee /etc/apt/sources.list.d/x.list
sshpass -f pwfile ssh joe@host22
mysql -uroot -P3306 shop
openssl rsa -in key.pem -passin env:KEYPASS2
openssl x509 -in cert2.pem -noout -text
htpasswd -c f joe42
az login --tenant 72f988bf-86f1-41af-91ab-2d7cd011db47
docker login ghcr.io -u joe42
(Pdb) p settings.DEBUG⏎True
(Pdb) p settings.DB_HOST⏎'db-12.example.org'
(Pdb) p password⏎*** NameError: name 'password' is not defined
(Pdb) p password⏎None
(Pdb) p settings.DB_PASSWORD⏎''
>>> settings.SECRET_FILE⏎'/run/secrets/db1'
>>> len(password)⏎12
>>> token⏎<Token at 0x7f12aa>
>>> key⏎('a1', 'b2')
$ echo $TOKEN_FILE⏎/run/token2
$ cat password.txt⏎cat: password.txt: No such file or directory
$ cat token.txt | wc -c⏎42
E        +  where 'db-12' = <Config>.host
E        +  where 200 = <Response [200]>.status_code
assert 'abc123def' == user.slug
assert '2024-01-02' == row.date
Config(host='db12', port=5432)
Config(password=None, host='db12.example.org')
Config(password='***', host='db12.example.org')
name: DB_HOST⏎value: "db-12.internal"
name: DB_PASSWORD⏎valueFrom:⏎  secretKeyRef:⏎    name: db-2
- name: DB_PASSWORD⏎  valueFrom: {secretKeyRef: {name: db-creds-2, key: password}}
variable "db_password" {⏎  type = string⏎  sensitive = true⏎}⏎variable "region" {⏎  default = "eu-west-1"⏎}
variable "db_password" {⏎  description = "Password of the db, min. 12 signs"⏎}
-e DB_HOST=db12.internal
ENV DB_HOST db12.internal
ENV PASSWORD_FILE /run/secrets/db2
Uid=joe;Server=h12;
jdbc:mysql://h:3306/x?user=joe42&ssl=true
<key>Name</key><string>joe-42-x</string>
<property name="host" value="db12.example.org"/>
"auths": {}
client-certificate-data: B64
certificate-authority-data: B64
region = eu-west-1
password must be at least 12 characters
password reset for user joe42
kubectl --user joe patch x -p '{"spec":{"replicas":2}}'
password changed 3 days ago
the password was changed on 2024-02-01
the password is stored in vault2
the password is in 1Password
password is hashed with sha256
password is wrong, 3 attempts left
the token is valid for 3600 seconds
the token is valid until 2024-01-01T00:00:00Z
the key is derived with pbkdf2-sha256
token count: 12345
token 42 of 128
key 12 of 20
pass 2 of 3
pass 1: 12ms
passed 12 of 14 tests
first pass: 83.2%
3. Pass them to Rule_L003._process_raw_stack
create(username=f'admin_{db}', password='something', email=f'test@{db}.org')
2 of 183 expected tests did not pass: tests/test_04_ignore_spec.py::IgnoreSpecPatternTest::test_15_issue_93_b_1_single failed, 1 error
58 of 529 expected tests did not pass: tests/test_bump.py::test_next_version[3.4.5-rc.9-None-3.4.5-rc.10--1] failed
must pass: "tests/test_duration.py::test_add[P5Y7M1DT9H45M16.72S-PT27M24.68S-P5Y7M1DT10H12M41.4S]"
pw.close() and pw2.close()
password2 = forms.CharField()
password1, password2 = get2()
test_password_reset_2 PASSED
password_validators[0]
auth0.com/login2
login page at /login2
login as root2?
user/password2 fields
username / password1 pair
user: admin / role: editor2
admin / editor2 roles
try 1 / 3
try GET /v1/users2
pw = Path(__file__).parent2
args.password2
from auth2 import login3
import passlib.hash as ph2
ssl_key=/etc/ssl/key2.pem
ssh-keygen -t ed25519 -f id_ed25519
keytool -list -keystore store2.jks
curl -u joe https://x42.org
curl -X POST -d @body2.json https://x.org
git commit -m "rotate password 2"
kubectl get secret db-creds-2 -o yaml
kubectl create secret generic db --from-file=password=./pw2.txt
gh secret list --repo a/b2
vault kv get secret/db2
aws secretsmanager get-secret-value --secret-id prod/db2
redis-cli -p 6379 ping2
zip -r out2.zip dir2
7z x archive2.7z
tar -xpf archive2.tar
ssh -p 2222 joe@host42
scp -P 2222 a joe@host42:
nmap -p 80,443 host42
mkdir -p build2/out3
docker run -p 8080:80 nginx2
python -m http.server -p 8080x
psql -U joe -p 5432 shop2
sqlcmd -S host42 -E
Token(type='NAME', value='x12')
{"type": "token", "value": "ident2"}
{"token": "ident2", "pos": 12}
lexer.token('NAME2', 'value3')
keyword = "async2"
keys = ["a1", "b2"]
for k in ("key1", "key2"):
sort -u -p file2
dict(key="value2")
assert key == "abc_123"
assert token == 'IDENT2'
self.assertEqual(token, "abc2")
Bearer token2 required
Basic auth2 required
authentication: oauth2
auth = OAuth2Session(client2)
auth_type=oauth2
credentials=service2
pass_count=42x
num_passes = 3
passphrase: (leave empty for none)
Enter passphrase (empty for no passphrase): 
Password (again): 
Password:
Password for joe@host42: 
[sudo] password for joe42: 
user joe42 logged in
Accepted password for joe42 from 10.0.0.2 port 51234 ssh2
Failed password for invalid user admin2 from 10.1.2.3 port 4242 ssh2
Accepted publickey for joe42 from 10.0.0.2
pam_unix(sshd:auth): authentication failure; user=joe42
passwd: password updated successfully for joe42
joe42:x:1000:1000:Joe:/home/joe42:/bin/bash
git push origin feature/password-reset2
the password field is id=pw-input-2
http://localhost:8080/login?next=/admin2
GET /reset-password?step=2 200
✓ logs in with password (124ms)
SECRET_NAME=db-creds-2
secretName: tls-cert-2
imagePullSecrets:⏎- name: regcred2
secretKeyRef:⏎  name: db2⏎  key: password2
from secrets import token_hex2
passwd = getpwnam("joe42").pw_passwd
hashlib.sha256(b"hello world 2")
hash("some text 2")
bcrypt.hash(password2, 10)
create_user(name2, email2, password2)
connect(sender, signal2, "slot_name2")
driver("chrome", "v120.1")
Connection(server, "utf8mb4", "x")
auth("GET", "/v1/items2")
login("user", "login2.html")
send "ls -l dir2\r"
expect "done 2"
child.sendline('ls -l /tmp2')
    --- PASS: TestAddresses/ipv4+zone (0.00s)
cmd.Env = append(cmd.Env, "PWD="+root2.Dir)
self.user, self.password = user, password⏎return self.authenticate('CRAM-MD5', self.answer)
wait and pass it to addr2line for the names
headers = ["CONNECT ", host, " HTTP/1.1\\r\\n"]
pass the client through ([cd8f34f](https://x.org/commit/1))
ED25519 key fingerprint is SHA512:B64.
POSTGRES_PASSWORD: ${POSTGRES_PASSWORD:?missing}
s3.upload_file("out", Bucket="lake", Key="events/dt=2024-03-01/part-00007-UUID-c000.snappy.parquet")
s3.put_object(Bucket="nightly-exports", Key="trips/2024/05/02/part-0001.parquet", Body=buf)
(Pdb) p user, password_field⏎('joe', 'password_2')
    assert form.password.errors == []⏎E       AssertionError: assert 'required-field' == []
username,email,password,role⏎joe,j@example.org,*****,admin⏎ann,a@example.org,NULL,clerk2
SORT_KEY=MD5
CACHE_KEY=MD5
key_hash = bytes.fromhex("SHA256")
[user]⏎    name = Anneke⏎    signingkey = 3AA5C34371567BD2
def get_password() -> str:
> /opt/app.py(31)get_password()->None
CREDENTIALS = [⏎    ("name", "password_field"),⏎]
@pytest.mark.parametrize("name, token", [("a", "NAME"), ("b", "STRING")])
$ pip freeze | grep -i -E 'token|secret|key'⏎detect-secrets==1.4.0
SLACK_TOKEN=xoxb-your-token-here
DEBUG cache MISS key=user:8812:perms:v3:MD5 ttl=300
"hashed_secret": "SHA1",
arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod-db-4aBcD3
Client("us-east-1")
s3 = boto3.client("s3-control2")
mot de passe oublié ? Cliquez ici
    Subject Key Identifier: 45:5F:ED:36:B9:DF:BD:F3:68:A2:58:7D:D1:18:47:2C:99:6C:AF:DE
    host, port, passwd = ("db2.lan1", 6380, None)
  password: {{ .Values.db.password | b64enc | quote }}
SLACK_TOKEN=xoxb-REPLACE-ME
ENV GPG_KEY=SHA1
root:x:0:0:root:/root:/bin/bash⏎app:x:1001:1001:App User:/srv/app:/usr/sbin/nologin
`
