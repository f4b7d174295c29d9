@echo off
rem Starts the version of waft in this script's directory. Input: waft_cache (may be empty), the arguments.
setlocal
if not defined waft_cache if defined WAFT_HOME set "waft_cache=%WAFT_HOME%\cache"
if not defined waft_cache set "waft_cache=%USERPROFILE%\.waft\cache"
rem Deno keeps compiled code there; the user's own Deno is not affected.
set "DENO_DIR=%waft_cache%\deno"
set "DENO_NO_UPDATE_CHECK=1"
rem Remote code is never loaded. V8's young generation begins with room for a whole short run, which is then not
rem collected. FFI makes every other permission meaningless, so all are granted; the commands that work on downloads run
rem without FFI.
set "waft_deny="
if "%~1"=="version" set "waft_deny=--deny-ffi"
if "%~1"=="self" set "waft_deny=--deny-ffi"
set "waft_options=--quiet --no-config --no-lock --no-check --no-remote --no-npm --v8-flags=--min-semi-space-size=4"
"%~dp0deno.exe" run -A %waft_options% %waft_deny% "%~dp0lib\waft.js" %*
exit /b %errorlevel%
