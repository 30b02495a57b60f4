package redact

// keyForms lists contexts in which keys and tokens occur, one per line, in the form of
// passwordForms.
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
client-key-data: %s
the api key is %s
API key: %s
the token (%s) expired
use token %s
with the api key %s
https://x.org/v1?key=%s
(Pdb) p settings.API_KEY⏎'%s'
>>> client.api_key⏎'%s'
$ echo $API_KEY⏎%s
$ cat token.txt⏎%s
E        +  where '%s' = <Client>.api_key
wallet private key: 0x%s
API_SECRET = (⏎    "first-9f8Qk2LmZ7aP3xRt"⏎    "%s"⏎)
AES_KEY = bytes.fromhex("%s")
⏎client_secret: >-⏎  %s⏎client_id: nb
⏎api_key: |⏎    %s⏎
token = jwt.encode({"sub": user.id, "exp": exp}, "%s", algorithm="HS256")
totp = pyotp.TOTP("%s")
url = f"https://api.example.org/data?q={city}&units=metric&appid=%s"
"%env KAGGLE_KEY=%s\\n",
⏎WEATHER_KEY=%s⏎
(Pdb) p api_key, retries⏎('%s', 3)
In [12]: cfg["token"]⏎Out[12]: '%s'
(client_id, client_secret) = ("inventory-sync", "%s")
    if request.headers.get("X-Admin-Token") != "%s":
(Pdb++) !api_token⏎b'%s'
{'sessionid': '%s', 'messages': ''}
embedder = cohere.Client("%s")
hdr = {"Authorization": "SSWS %s", "Accept": "application/json"}
` + "Set `API_TOKEN` to `%s` and rerun\n"
