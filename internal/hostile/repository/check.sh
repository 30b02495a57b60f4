# The tests: run hostile.sh if a case has written it, else print one line.
if [ -e hostile.sh ]; then
  exec bash ./hostile.sh
fi
echo "tests ran"
