@echo off
rem waft's launcher: starts the active version of waft, or the version that `+<version>` or WAFT_RUNTIME names.
rem Written by the installer.
setlocal
set "waft_root=%WAFT_HOME%"
if not defined waft_root set "waft_root=%USERPROFILE%\.waft"
set "waft_cache=%waft_root%\cache"
set "waft_first=%~1"
rem The entry module drops a first word that names the version.
if defined waft_first if "%waft_first:~0,1%"=="+" set "WAFT_RUNTIME=%waft_first:~1%"
set "waft_version=%WAFT_RUNTIME%"
set "waft_why=named by WAFT_RUNTIME"
if defined waft_version goto named
set "waft_why=the active one"
rem The file is {"schemaVersion":1,"current":"<version>",...}.
if exist "%waft_root%\state\active.json" (
  for /f "usebackq tokens=3,4 delims=:,{}" %%a in ("%waft_root%\state\active.json") do if %%a=="current" set "waft_version=%%~b"
)
if defined waft_version goto named
echo waft: no version is active (%waft_root%\state\active.json)>&2
echo waft: use one with `waft +^<version^> version use ^<version^>`, or run the installer again>&2
exit /b 1
:named
rem Versions have no other characters: a name with a separator would mean another directory.
setlocal EnableDelayedExpansion
set "waft_wrong="
for /f "delims=+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" %%a in ("x!waft_version!") do set "waft_wrong=1"
if "!waft_version:~0,1!"=="." set "waft_wrong=1"
if defined waft_wrong (
  echo waft: the version ^(%waft_why%^) has no valid name>&2
  exit /b 1
)
endlocal
set "waft_dir=%waft_root%\versions\%waft_version%"
if exist "%waft_dir%\receipt.json" if exist "%waft_dir%\start.cmd" goto start
echo waft: version %waft_version% (%waft_why%) is not installed in %waft_root%\versions>&2
echo waft: use another one with `waft +^<version^> version use ^<version^>`, or run the installer again>&2
exit /b 1
:start
"%waft_dir%\start.cmd" %*
