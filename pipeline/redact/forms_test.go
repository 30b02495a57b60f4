package redact

// passwordForms lists contexts in which passwords occur, one per line. byContext replaces %s with a
// generated password, ⏎ with a line break and ⇥ with a tab.
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
ldap_bind($c, "cn=admin,dc=example,dc=org", "%s");
$ds = ldap_bind($conn, $dn, '%s');
conn.simple_bind_s("cn=joe,dc=x", "%s")
l.bind_s("cn=joe,dc=x", "%s")
Connection(server, "cn=joe,dc=x", "%s", auto_bind=True)
.basic("joe", "%s")
Credentials.basic("joe", "%s")
.httpBasic().auth().basic("joe", "%s")
page.fill("#password", "%s")
await page.fill('input[name="password"]', '%s');
page.type("#pass", "%s")
driver.find_element(By.ID, 'passwd').send_keys('%s')
element = driver.find_element(By.ID, "password")⏎element.send_keys("%s")
password_input.send_keys("%s")
passwordField.sendKeys("%s");
fill_in "Password", with: "%s"
fill_in 'user[password]', with: '%s'
userEvent.type(screen.getByLabelText(/password/i), '%s')
fireEvent.change(passwordInput, {target: {value: '%s'}})
document.getElementById("password").value = "%s";
$('#password').val('%s')
Input Text    id=password    %s
Input Password    name:password    %s
The db password (%s) is wrong
try admin / %s
You can try admin/%s on staging.
Credentials for the box: joe / %s
password is still %s
the new password is now %s
I changed the password from %s to something else
my password's %s
passwd was reset to %s
use %s as the password
using %s as password
Use "%s" as your password for now
the pass phrase is %s
* Password — %s
Password - %s
Admin password ........ %s
reg add "HKLM\SOFTWARE\Foo" /v Password /t REG_SZ /d %s /f
reg add HKCU\Software\App /v DefaultPassword /d "%s"
runas /user:DOMAIN\joe %s
ldappasswd -s %s -D cn=admin
ldappasswd -x -D "cn=admin,dc=x" -w old -s %s "uid=joe"
ldapadd -x -D cn=admin -w %s -f a.ldif
kinit joe <<< %s
kinit joe@EXAMPLE.ORG <<< "%s"
echo %s | kinit joe
echo %s | passwd --stdin joe
echo %s | gpg --batch --passphrase-fd 0 -d x.gpg
openssl enc -aes-256-cbc -k %s -in a
htpasswd -nb joe %s
redis-cli -h cache -p 6379 -a '%s'
AUTH %s
ftp -n <<EOF⏎open host⏎user joe %s⏎EOF
lftp joe:%s@host
net use \\h\s /user:joe %s
rar a -hp%s a.rar
pdftotext -upw %s a.pdf
cryptsetup luksOpen /dev/x y <<< %s
xfreerdp /u:joe /p:%s /v:h
vncpasswd -f <<< %s
expect "Password:"⏎send "%s\r"
expect "*assword*" { send "%s\r" }
spawn ssh joe@h⏎expect "password:"⏎send -- "%s\n"
child.expect('Password:')⏎child.sendline('%s')
child.expect("password:"); child.sendline("%s")
client.connect('h', 22, 'joe', '%s')
chpasswd <<< "joe:%s"
INSERT INTO users (name, password) VALUES ('joe', '%s');
INSERT INTO users (name, email, password) VALUES ('joe', 'j@x', '%s');
pgp_sym_encrypt(x, '%s')
db.changeUserPassword("joe", "%s")
(Pdb) print(self.password)⏎%s
>>> print(password)⏎%s
>>> os.environ["DB_PASSWORD"]⏎'%s'
>>> os.environ.get('DB_PASSWORD')⏎'%s'
In [3]: cfg.password⏎Out[3]: '%s'
In [3]: os.getenv("DB_PASSWORD")⏎Out[3]: '%s'
(gdb) p password⏎$1 = "%s"
(gdb) print cfg->password⏎$2 = 0x5581 "%s"
(lldb) po password⏎%s
(dlv) p cfg.Password⏎"%s"
$ echo $DB_PASSWORD⏎%s
$ echo "$DB_PASSWORD"⏎%s
$ printenv DB_PASSWORD⏎%s
$ cat /run/secrets/db_password⏎%s
$ cat password.txt⏎%s
$ pass show db/password⏎%s
$ vault kv get -field=password secret/db⏎%s
# echo ${DB_PASSWORD}⏎%s
irb(main):001> ENV["DB_PASSWORD"]⏎=> "%s"
assert '%s' == password
E        +  where '%s' = Config(host='x').password
E        +  where '%s' = settings.DB_PASSWORD
{"value": "%s", "name": "DB_PASSWORD"}
<add value="%s" key="DbPassword"/>
variable "db_password" {⏎  description = "the password of the db"⏎  type = string⏎  sensitive = true⏎  default = "%s"⏎}
output "password" {⏎  value = "%s"⏎}
Set-ADAccountPassword joe -NewPassword (ConvertTo-SecureString -AsPlainText "%s" -Force)
conf.set('db', 'password', '%s')
url.UserPassword("joe", "%s")
smtp.PlainAuth("", "joe@x.org", "%s", "smtp.x.org")
check_password("%s", hash)
user.check_password('%s')
bcrypt.hash('%s', 10)
password_hash('%s', PASSWORD_DEFAULT)
Password for 'https://joe@x.org': %s
authentication failed: joe/%s
DEBUG: connecting as joe:%s
A temporary password is generated for root@localhost: %s
Please use the following password to proceed to installation:⏎⏎%s⏎
The password is:⏎⏎    %s⏎
hey, the vpn password got rotated, it's %s now
password (temporary): %s
Their router still has the default password (%s)
# root / %s
# admin:%s
binddn cn=x⏎bindpw: %s
olcRootPW: %s
radius-server key %s
crypto isakmp key %s address 1.2.3.4
pre-shared-key %s
PreSharedKey: %s
security import c.p12 -P %s
security create-keychain -p %s build.keychain
certutil -p %s -importpfx c.pfx
dotnet dev-certs https -ep c.pfx -p %s
$ftp = ftp_login($conn, "joe", "%s");
ssh2_auth_password($c, 'joe', '%s');
curl_setopt($ch, CURLOPT_USERPWD, "joe:%s");
curl_setopt($ch, CURLOPT_PASSWORD, '%s');
c.setopt(pycurl.USERPWD, 'joe:%s')
curl_easy_setopt(curl, CURLOPT_USERPWD, "joe:%s");
Hash::make('%s')
drush user:password joe "%s"
ENV["DB_PASSWORD"] ||= "%s"
Net::FTP.open("h", "joe", "%s")
imap.authenticate('LOGIN', 'joe', '%s')
smtp.PlainAuth("", user, "%s", host)
new Sequelize('x', 'joe', '%s', { host: 'h' })
await page.type('#password', '%s')
browser.setValue('#password', '%s')
await element(by.id('password')).typeText('%s');
onView(withId(R.id.password)).perform(typeText("%s"));
userEvent.type(getByLabelText('Password'), '%s')
user.type(screen.getByPlaceholderText("Password"), "%s")
wrapper.find('#password').setValue('%s')
fireEvent.change(getByTestId('password'), { target: { value: '%s' } })
find('#password').set '%s'
fill_in :password, with: '%s'
And I fill in "Password" with "%s"
| username | password |⏎| joe | %s |
username,password⏎joe,%s
name;password⏎joe;%s
Content-Disposition: form-data; name="password"⏎⏎%s
name="password"⏎⏎%s⏎------WebKitFormBoundary
a001 LOGIN joe %s
A1 LOGIN "joe@x.org" "%s"
C: a1 LOGIN joe "%s"
NICK joe⏎PRIVMSG NickServ :IDENTIFY %s
/msg NickServ IDENTIFY joe %s
AUTH default %s
127.0.0.1:6379> AUTH %s
EXEC sp_password NULL, '%s', 'joe'
openssl aes-256-cbc -d -k %s -in x
openssl passwd -6 %s
openssl passwd -1 -salt xy %s
echo %s | gpg --passphrase-fd 0 x
steghide extract -sf a.jpg -p %s
hydra -l joe -p %s ssh://h
xfreerdp /v:h /u:joe /p:'%s'
sshfs -o password_stdin joe@h:/ m <<< '%s'
rclone obscure %s
chpasswd:⏎  list: |⏎    root:%s
rootpw --plaintext %s
net rpc password joe %s -U admin
NET USER joe %s /ADD /DOMAIN
winrs -r:h -u:joe -p:%s cmd
<AdministratorPassword><Value>%s</Value></AdministratorPassword>
<Password><Value>%s</Value><PlainText>true</PlainText></Password>
docker secret create p - <<< %s
printf %s | docker secret create p -
echo -n '%s' | docker secret create db_password -
echo -n '%s' | gcloud secrets create db-password --data-file=-
expect -c 'spawn su; expect "Password:"; send "%s\r"'
spawn su -⏎expect {⏎ "assword:" { send "%s\r" }⏎}
echo '%s' | su -c id root
su - joe <<< "%s"
echo "%s" | sudo --stdin ls
sudo -S ls <<< %s
yes %s | passwd joe
curl --user joe:'%s' u
curl -sSf -u 'joe':'%s' u
ERROR: FATAL: password authentication failed for "joe" using "%s"
password mismatch: got %s
(rdb:1) p password⏎"%s"
[1] pry(main)> user.password⏎=> "%s"
php > echo $password;⏎%s
scala> password⏎val res0: String = %s
$1 = {user = 0x1 "joe", password = 0x2 "%s"}
(gdb) x/s password⏎0x7ffe: "%s"
(Pdb) p username, password⏎('c.villanueva', '%s')
(Pdb) user, cfg.password⏎('loader', '%s')⏎(Pdb) c
subprocess.check_call(["7z", "x", "-p%s", "payroll.7z"])
>       assert cfg.smtp_password == ""⏎E       AssertionError: assert '%s' == ''
    assert settings.password is None⏎E   assert '%s' is None
login attempt user=k.bergstrom password=Ahoi.%s ip=81.229.14.3
passphrase: "mind the 9 wet %s badgers"
username,email,password,role⏎joe,j@example.org,*****,admin⏎ann,a@example.org,%s,clerk
redis_password: str = Field("%s", alias="REDIS_PASSWORD")
> /opt/etl/secrets.py(31)get_password()->'%s'
Command '['sshpass', '-p', '%s', 'ssh', 'h@db3'] failed
sshpass -p 'hN;%s' scp build.tgz ann@host:/srv/
CREDENTIALS = [⏎    ("lchen", "%s"),⏎    ("readonly", ""),⏎]
CREDENTIALS = [⏎    ("lchen", "first"),⏎    ("readonly", "%s"),⏎]
@pytest.mark.parametrize(⏎    "username, password",⏎    [("kimura", "%s"), ("", "")],⏎)
DB_PASSWORD⏎  Extra inputs are not permitted [type=extra_forbidden, input_value='%s', input_type=str]
le mot de passe de la base c'est « %s », merci
la contraseña del root es %s, acuérdate
логин reporter, пароль %s⏎
パスワード:%s 有効期限は今月末まで
das Passwort für den Testserver lautet %s (User: tester)
ValueError: Port could not be cast to integer value as '%s'
./deploy/all.yml:7:db_password: %s
⏎site_name⇥Shop⏎smtp_password⇥%s⏎items⇥25
    host, port, passwd = ("db.lan1", 6380, '%s')
(host, port, login, passwd) = ('db3.lan', 5432, 'ann22', '%s')
`
