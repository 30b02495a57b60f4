# Starts a console command under the debugger. $1 is the bootstrap code and $2 the workspace;
# the command and its arguments follow. The script uses the interpreter in the shebang line of
# the command.
boot=$1 root=$2
shift 2
name=${1##*/}
path=$(type -P -- "$1")
[ -n "$path" ] || { [ -f "$1" ] && path=$1; }
first= second=
if [ -n "$path" ]; then
  { IFS= read -r first; IFS= read -r second; } <"$path" 2>/dev/null
fi
shift
case $first in
'#!'*python*)
  read -ra words <<<"${first#??}"
  if [ "${words[0]##*/}" = env ]; then
    words=("${words[@]:1}")
    [ "${words[0]}" = -S ] && words=("${words[@]:1}")
  fi
  exec "${words[@]}" -u -c "$boot" "$root" "$path" "$@" ;;
'#!/bin/sh')
  # pip writes this if the interpreter's path is too long for a shebang line.
  if [[ $second == "'''exec' "* ]]; then
    second=${second#"'''exec' "}
    second=${second%%' "$0"'*}
    second=${second#\"}
    exec "${second%\"}" -u -c "$boot" "$root" "$path" "$@"
  fi ;;
esac
case $path in
*.py) exec python3 -u -c "$boot" "$root" "$path" "$@" ;;
esac
if [[ $first == '#!'* || -z $path ]] && [[ $name =~ ^[A-Za-z_][A-Za-z0-9_.]*$ ]]; then
  # A wrapper script (as pyenv installs) or no such command: try a module with the same name.
  for python in python3 python; do
    if "$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)' "$name" </dev/null >/dev/null 2>&1; then
      exec "$python" -u -c "$boot" "$root" -m "$name" "$@"
    fi
  done
fi
if [ -z "$path" ]; then
  echo "$name: command not found" >&2
  exit 127
fi
echo "$name is not a Python program, so pdb cannot run it. Pass an entrypoint such as: python -m pytest tests/test_x.py" >&2
exit 126
