package discover

import "strings"

// developerTools are packages that tests do not need. Plans do not install them.
var developerTools = wordSet(`black isort flake8 mypy ruff pre-commit tox nox twine build sphinx furo mkdocs pylint pyright bandit codecov coveralls
	bump2version bumpversion towncrier wheel check-manifest codespell doc8 pip uv zest-releaser tox-uv tox-gh-actions sphinx-rtd-theme
	mkdocs-material pyupgrade virtualenv commitizen flit poetry hatch cibuildwheel pdm`)

func wordSet(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(text) {
		out[w] = true
	}
	return out
}

// parsePairs parses alternating keys and values, separated by spaces.
func parsePairs(text string) map[string]string {
	out := map[string]string{}
	f := strings.Fields(text)
	for i := 0; i+1 < len(f); i += 2 {
		out[f[i]] = f[i+1]
	}
	return out
}

// distributionOf maps modules to the distributions that provide them.
var distributionOf = parsePairs(`yaml PyYAML bson pymongo bs4 beautifulsoup4 dateutil python-dateutil PIL Pillow cv2 opencv-python-headless sklearn scikit-learn
	skimage scikit-image OpenSSL pyOpenSSL Crypto pycryptodome attr attrs attrs attrs pkg_resources setuptools<81 setuptools setuptools<81
	distutils setuptools<81 git GitPython jwt PyJWT serial pyserial usb pyusb docx python-docx pptx python-pptx dotenv python-dotenv
	magic python-magic slugify python-slugify markdown Markdown jose python-jose multipart python-multipart ruamel ruamel.yaml
	google protobuf zmq pyzmq gi PyGObject win32api pywin32 MySQLdb mysqlclient psycopg2 psycopg2-binary ldap python-ldap
	fitz PyMuPDF nacl PyNaCl socks PySocks websocket websocket-client Xlib python-xlib snappy python-snappy lzma backports.lzma
	mock mock nose nose six six toml toml tomli tomli simplejson simplejson pytz pytz freezegun freezegun hypothesis hypothesis
	importlib_metadata importlib-metadata importlib_resources importlib-resources typing_extensions typing-extensions
	exceptiongroup exceptiongroup sortedcontainers sortedcontainers pytest pytest trustme trustme parameterized parameterized
	pytest_cov pytest-cov xdist pytest-xdist pytest_mock pytest-mock pytest_asyncio pytest-asyncio pytest_timeout pytest-timeout
	pytest_benchmark pytest-benchmark pytest_httpserver pytest-httpserver pytest_subtests pytest-subtests pyfakefs pyfakefs
	time_machine time-machine flask Flask jinja2 Jinja2 django Django sqlalchemy SQLAlchemy babel Babel pygments Pygments
	genshi Genshi chameleon Chameleon html5lib html5lib lxml lxml numpy numpy pandas pandas scipy scipy matplotlib matplotlib
	absl absl-py odf odfpy Levenshtein python-Levenshtein dns dnspython rest_framework djangorestframework faker Faker
	flask_sqlalchemy Flask-SQLAlchemy zope zope.interface tests_common pytest testfixtures testfixtures ddt ddt`)

// wellKnown are distributions that provide a module of the same name, apart from - and _. Only these are installed for a
// module that the repository's metadata does not explain.
var wellKnown = wordSet(`aiofiles aiohttp aiosqlite alembic altair annotated-types antlr4-python3-runtime anyio apscheduler arrow asgiref astor
	astroid asttokens async-timeout asyncpg attrs autobahn babel backoff bcrypt bidict black bleach blessed blinker blosc bokeh boltons boto
	boto3 botocore bottle brotli cachecontrol cachelib cachetools cattrs celery certifi cffi chardet charset-normalizer cheroot cherrypy click
	cloudpickle colorama coloredlogs colorlog commonmark construct contextlib2 coverage croniter cryptography cssselect cssutils cycler
	cython dask databases dataclasses-json dateparser decorator deepdiff defusedxml deprecated deprecation dill distlib distributed dnspython
	docker docopt docstring-parser docutils ecdsa elasticsearch email-validator eventlet executing falcon fastapi fasteners feedparser filelock
	flake8 flexmock fonttools freezegun frozendict frozenlist fsspec ftfy funcy furl future gast geopy gevent gmpy2 graphene graphql-core
	graphviz greenlet grpcio gunicorn h11 h2 h5py hiredis hjson holidays hpack html5lib httmock httpcore httplib2 httpretty httptools httpx
	humanfriendly humanize hyperframe hyperlink hypercorn hypothesis idna imageio immutables importlib-metadata importlib-resources inflect
	inflection iniconfig invoke ipykernel ipython isodate isort itsdangerous jedi jeepney jinja2 jmespath joblib json5 jsonlines jsonpatch
	jsonpath-ng jsonpickle jsonpointer jsonref jsonschema keyring kombu lark lazy-object-proxy librosa llvmlite lmdb logbook loguru lxml lz4
	mako markdown markdown-it-py markdown2 markupsafe marshmallow matplotlib mccabe mechanize mistune mock mongoengine mongomock more-itertools
	moto mpmath msgpack msgspec multidict mypy mypy-extensions natsort nbformat netaddr networkx nltk nose2 notebook numba numexpr numpy
	oauthlib openpyxl orjson orderedmultidict packaging pandas parameterized paramiko parsel parso passlib pathlib2 pathspec patsy peewee pendulum
	pep8 pexpect phonenumbers pika pillow pint platformdirs plotly pluggy ply polars portalocker prettytable prometheus-client prompt-toolkit
	proto-plus psutil psycopg psycopg2 ptyprocess pure-eval py pyarrow pyasn1 pyasn1-modules pycodestyle pycountry pycparser pycurl pydantic
	pydantic-core pydantic-settings pydot pyfakefs pyflakes pygments pyinstrument pymongo pymysql pynvml pyodbc pyparsing pyperclip pyproj
	pyrsistent pytest pytest-django pytz pytz-deprecation-shim pywavelets qrcode rapidfuzz rarfile redis referencing regex reportlab requests
	requests-mock requests-oauthlib requests-toolbelt responses respx rfc3986 rfc3987 rich rope rpds-py rsa ruamel-yaml s3transfer sanic scipy
	scrapy seaborn selenium semantic-version semver sentry-sdk setproctitle shapely shellingham simplejson simpy six sniffio snowballstemmer
	sortedcontainers soupsieve sphinx sqlalchemy sqlglot sqlparse starlette statsmodels structlog svgwrite sympy tables tabulate tblib tenacity
	termcolor testfixtures testtools text-unidecode textdistance texttable tinycss2 toml tomli tomli-w tomlkit toolz toposort tornado tqdm
	traitlets trio trustme twisted typeguard typer typing-extensions typing-inspect tzdata tzlocal ujson unidecode unittest2 uritemplate urllib3
	uvicorn uvloop validators vcrpy virtualenv voluptuous waitress watchdog wcwidth webcolors webencodings webob websockets webtest werkzeug
	wheel whoosh wrapt wsproto wtforms xarray xlrd xlsxwriter xlwt xmlschema xmltodict xxhash yarl zeroconf zipp zstandard`)

// pluginOfFixture maps fixtures of pytest to the plugins that provide them.
var pluginOfFixture = parsePairs(`mocker pytest-mock benchmark pytest-benchmark subtests pytest-subtests requests_mock requests-mock
	httpserver pytest-httpserver faker Faker snapshot syrupy freezer pytest-freezer fs pyfakefs datadir pytest-datadir
	shared_datadir pytest-datadir data_regression pytest-regressions file_regression pytest-regressions num_regression pytest-regressions
	aiohttp_client pytest-aiohttp httpbin pytest-httpbin respx_mock respx time_machine time-machine nursery pytest-trio
	autojump_clock pytest-trio anyio_backend anyio qtbot pytest-qt httpx_mock pytest-httpx event_loop pytest-asyncio
	script_runner pytest-console-scripts cov pytest-cov check pytest-check vcr pytest-vcr worker_id pytest-xdist
	responses pytest-responses mongodb pytest-mongodb settings pytest-django client pytest-django db pytest-django fp pytest-subprocess
	fake_process pytest-subprocess caplog_workaround pytest lazy_fixture pytest-lazy-fixtures image_regression pytest-regressions`)

// pluginOfModule maps modules that pytest loads with -p to the plugins that provide them.
var pluginOfModule = parsePairs(`pytest_cov pytest-cov xdist pytest-xdist pytest_asyncio pytest-asyncio pytest_timeout pytest-timeout
	pytest_mock pytest-mock pytest_benchmark pytest-benchmark pytest_randomly pytest-randomly hypothesis.extra.pytestplugin hypothesis
	sphinx.testing.fixtures sphinx pytest_subtests pytest-subtests sybil sybil`)

// pluginOfSetting maps settings of pytest to the plugins that define them.
var pluginOfSetting = parsePairs(`asyncio_mode pytest-asyncio asyncio_default_fixture_loop_scope pytest-asyncio timeout pytest-timeout
	timeout_method pytest-timeout trio_mode pytest-trio env pytest-env django_settings_module pytest-django
	DJANGO_SETTINGS_MODULE pytest-django mypy_plugin pytest-mypy-plugins qt_api pytest-qt doctest_plus pytest-doctestplus
	remote_data_strict pytest-remotedata mock_use_standalone_module pytest-mock anyio_mode anyio markdown-docs-syntax pytest-markdown-docs
	randomly_seed pytest-randomly rerun_except pytest-rerunfailures reruns pytest-rerunfailures benchmark_disable pytest-benchmark
	flake8-max-line-length pytest-flake8 spec_header_format pytest-spec python_files_and_fixtures pytest flakes-ignore pytest-flakes
	pep8ignore pytest-pep8 collect_ignore_doctest pytest-doctestplus xvfb_width pytest-xvfb text_file_format pytest-doctestplus`)

// optionPlugins lists prefixes of command-line options and the plugins that define these options.
var optionPlugins = [][2]string{
	{"--no-cov", "pytest-cov"}, {"--cov", "pytest-cov"}, {"--numprocesses", "pytest-xdist"}, {"--dist", "pytest-xdist"}, {"--maxprocesses", "pytest-xdist"},
	{"--timeout", "pytest-timeout"}, {"--session-timeout", "pytest-timeout"}, {"--benchmark", "pytest-benchmark"},
	{"--asyncio", "pytest-asyncio"}, {"--mypy-", "pytest-mypy-plugins"}, {"--mypy", "pytest-mypy"}, {"--flake8", "pytest-flake8"}, {"--flakes", "pytest-flakes"},
	{"--black", "pytest-black"}, {"--isort", "pytest-isort"}, {"--pylint", "pytest-pylint"}, {"--ruff", "pytest-ruff"},
	{"--reruns", "pytest-rerunfailures"}, {"--randomly", "pytest-randomly"}, {"--random-order", "pytest-random-order"},
	{"--doctest-plus", "pytest-doctestplus"}, {"--doctest-rst", "pytest-doctestplus"}, {"--remote-data", "pytest-remotedata"},
	{"--open-files", "pytest-openfiles"}, {"--arraydiff", "pytest-arraydiff"}, {"--mpl", "pytest-mpl"}, {"--html", "pytest-html"}, {"--self-contained", "pytest-html"},
	{"--ds", "pytest-django"}, {"--reuse-db", "pytest-django"}, {"--nomigrations", "pytest-django"}, {"--create-db", "pytest-django"},
	{"--nbval", "nbval"}, {"--codspeed", "pytest-codspeed"}, {"--instafail", "pytest-instafail"}, {"--snapshot", "syrupy"},
	{"--vcr", "pytest-recording"}, {"--record-mode", "pytest-recording"}, {"--block-network", "pytest-recording"}, {"--disable-socket", "pytest-socket"}, {"--allow-hosts", "pytest-socket"},
	{"--splits", "pytest-split"}, {"--parallel-threads", "pytest-run-parallel"}, {"--iterations", "pytest-run-parallel"}, {"--memray", "pytest-memray"},
	{"--xdoctest", "xdoctest"}, {"--beartype", "pytest-beartype"}, {"--typeguard", "typeguard"}, {"--retries", "pytest-retry"},
	{"--hypothesis", "hypothesis"}, {"--checkdocs", "pytest-checkdocs"}, {"--enabler", "pytest-enabler"}, {"--test-alembic", "pytest-alembic"},
	{"--mock-use", "pytest-mock"}, {"--pspec", "pytest-pspec"}, {"--spec", "pytest-spec"}, {"--clarity", "pytest-clarity"}, {"--picked", "pytest-picked"}, {"--tldr", "pytest-tldr"},
	{"--markdown-docs", "pytest-markdown-docs"}, {"--doctest-mdcodeblocks", "pytest-codeblocks"}, {"--codeblocks", "pytest-codeblocks"}, {"--count", "pytest-repeat"},
}

// pluginOfOption returns the plugin that defines an option, or "" if pytest itself defines it or it is unknown.
func pluginOfOption(option string) string {
	if option == "-n" {
		return "pytest-xdist"
	}
	for _, p := range optionPlugins {
		if option == p[0] || strings.HasPrefix(option, p[0]+"-") || strings.HasPrefix(option, p[0]) && strings.HasSuffix(p[0], "-") ||
			strings.HasPrefix(option, p[0]+"=") {
			return p[1]
		}
	}
	return ""
}
