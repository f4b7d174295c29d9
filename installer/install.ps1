# Installs waft on Windows:  irm https://waft.sh/install.ps1 | iex
#
# With options: & ([scriptblock]::Create((irm https://waft.sh/install.ps1))) -Yes -Dir C:\tools
#
# Each release has a separate copy of this script that contains the digests of its archives (scripts/package/release.ts
# writes them between the marks below), so the unpacked files are as trustworthy as the script. Other versions are
# installed by the installed waft, which checks the signed release index. Invariant: nothing outside of a temporary
# directory changes until the archive has been checked and has started once. Needs Windows 10 1803 or newer, for
# tar.exe.
param(
  [switch]$Yes,
  [string]$Dir = $env:WAFT_INSTALL_DIR,
  [string]$Version = $env:WAFT_VERSION,
  [string]$Base = $env:WAFT_RELEASE_BASE,
  [switch]$NoModifyPath,
  [switch]$DryRun,
  [switch]$Uninstall,
  [switch]$Purge
)
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'

# --- release ---
$RELEASE_VERSION = ''
$RELEASE_COMMIT = ''
$RELEASE_BASE = 'https://waft.sh'
# platform, SHA-256
$RELEASE_BUNDLES = ''
# --- end of release ---

function Stop-Install([string]$Message, [string]$Help) {
  [Console]::Error.WriteLine("install.ps1: $Message")
  if ($Help) { [Console]::Error.WriteLine("install.ps1: $Help") }
  throw $Message
}

# Directory of everything that belongs to waft.
function Get-Root {
  if ($env:WAFT_HOME) { return $env:WAFT_HOME }
  return Join-Path $env:USERPROFILE '.waft'
}

# Platform of this machine; fails where waft has no build.
function Get-Platform {
  $machine = $env:PROCESSOR_ARCHITECTURE
  if ($env:PROCESSOR_ARCHITEW6432) { $machine = $env:PROCESSOR_ARCHITEW6432 }
  switch ($machine) {
    'AMD64' { return 'windows/amd64' }
    default { Stop-Install "waft has no build for Windows on $machine" 'it runs on amd64' }
  }
}

function Test-Base([string]$Url) {
  return ($Url -match '^https://.') -or ($Url -match '^http://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?(/|$)')
}

# Digest that this script has for the platform's archive.
function Get-Expected([string]$Platform) {
  foreach ($line in $RELEASE_BUNDLES -split "`n") {
    $name, $digest = $line.Trim() -split ' '
    if ($name -eq $Platform) { return $digest }
  }
  Stop-Install "release $RELEASE_VERSION has no bundle for $Platform"
}

# Entries of the user's PATH as the registry has them: references to other variables stay references.
function Get-UserPath {
  $value = (Get-Item 'HKCU:\Environment').GetValue('Path', '', 'DoNotExpandEnvironmentNames')
  return @($value -split ';' | Where-Object { $_ -ne '' })
}

function Set-UserPath([string[]]$Entries) {
  Set-ItemProperty -Path 'HKCU:\Environment' -Name 'Path' -Value ($Entries -join ';') -Type ExpandString
  # Only a change through .NET tells running programs to read the variables again.
  [Environment]::SetEnvironmentVariable('WAFT_PATH_CHANGED', '1', 'User')
  [Environment]::SetEnvironmentVariable('WAFT_PATH_CHANGED', [NullString]::Value, 'User')
}

function Add-ToPath([string]$Bin) {
  $entries = @(Get-UserPath)
  if ($entries -contains $Bin) { return }
  Set-UserPath ($entries + $Bin)
  $env:Path = "$env:Path;$Bin"
  [Console]::Error.WriteLine("added $Bin to the PATH of new terminals")
}

function Remove-FromPath([string]$Bin) {
  Set-UserPath @(Get-UserPath | Where-Object { $_ -ne $Bin })
}

# Directory of the launcher for this installation. Absolute, because it goes into the PATH.
function Get-Bin {
  $bin = $Dir
  if (-not $bin) { $bin = Join-Path (Get-Root) 'bin' }
  return $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($bin)
}

# Directory of the launcher, as the installation recorded it.
function Get-InstalledBin([string]$Root) {
  $receipt = Join-Path $Root 'state\install-receipt.json'
  if (-not (Test-Path $receipt)) { return $null }
  return (Get-Content -Raw -Encoding UTF8 $receipt | ConvertFrom-Json).bin
}

# Names that waft gives to the entries of its directories, as `waft self uninstall` knows them; all other entries belong
# to others.
$OWN_NAMES = @{
  cache = '^(?:blobs|compiled|deno|downloads|indexes|records)$'
  state = '^(?:trust|active\.json|install-receipt\.json|release-seen\.json|waft-lock\.json\.lock(?:\.[0-9a-f]{12})?|[a-z-]+\.json\.[0-9a-f]{12}\.tmp)$'
  config = '^(?:config|policy|registry-keys|credentials)\.json(?:\.[0-9a-f]{12}\.tmp)?$'
}

# Entries of one of waft's directories that waft made.
function Get-OwnEntries([string]$Root, [string]$Directory) {
  $path = Join-Path $Root $Directory
  if (-not (Test-Path -LiteralPath $path)) { return @() }
  return @(Get-ChildItem -Force -LiteralPath $path |
      Where-Object { $_.Name -cmatch $OWN_NAMES[$Directory] } | ForEach-Object { $_.FullName })
}

# Directories of installed versions, and what interrupted installations left beside them.
function Get-OwnVersions([string]$Root) {
  $path = Join-Path $Root 'versions'
  if (-not (Test-Path -LiteralPath $path)) { return @() }
  return @(Get-ChildItem -Force -Directory -LiteralPath $path | Where-Object {
      ($_.Name -cmatch '^\.(?:staging|old)-[0-9a-f]{12}$') -or (Test-Path -LiteralPath (Join-Path $_.FullName 'receipt.json'))
    } | ForEach-Object { $_.FullName })
}

function Remove-Waft {
  $root = Get-Root
  $bin = Get-InstalledBin $root
  if (-not $bin) { Stop-Install 'waft is not installed here' }
  # The versions go first: a running one cannot be removed, and stops the removal while everything else is there.
  $paths = @(Get-OwnVersions $root) + @(Get-OwnEntries $root 'cache')
  if ($Purge) { $paths += @(Get-OwnEntries $root 'config') }
  $paths += @(Get-OwnEntries $root 'state') + @(Join-Path $bin 'waft.cmd')
  $paths | ForEach-Object { [Console]::Error.WriteLine("remove $_") }
  if ($DryRun) { return }
  if (-not $Yes -and (Read-Host 'Remove waft? [y/N]') -notmatch '^(y|yes)$') { return }
  Remove-FromPath $bin
  foreach ($path in $paths) {
    if (Test-Path -LiteralPath $path) { Remove-Item -Recurse -Force -LiteralPath $path }
  }
  # A directory that is not empty is in use by others.
  $directories = @('versions', 'cache', 'state', 'config' | ForEach-Object { Join-Path $root $_ }) + @($bin, $root)
  foreach ($path in $directories) {
    if ((Test-Path -LiteralPath $path) -and -not (Get-ChildItem -Force -LiteralPath $path)) { Remove-Item -Force -LiteralPath $path }
  }
}

# The system's tar: one from the PATH may be GNU's, which takes C: for the name of a machine.
function Get-Tar {
  $system = 'System32'
  if ($env:PROCESSOR_ARCHITEW6432) { $system = 'Sysnative' } # a 32-bit PowerShell sees another System32
  $tar = Join-Path $env:SystemRoot "$system\tar.exe"
  if (-not (Test-Path -LiteralPath $tar)) { Stop-Install 'tar.exe is missing' 'waft needs Windows 10 1803 or newer' }
  return $tar
}

function Install-Waft {
  if (-not $RELEASE_VERSION) { Stop-Install 'this copy of the script is not part of a release' "take $Base/install.ps1" }
  $tar = Get-Tar
  $platform = Get-Platform
  $expected = Get-Expected $platform
  $work = Join-Path ([IO.Path]::GetTempPath()) "waft-install-$([Guid]::NewGuid().ToString('N'))"
  New-Item -ItemType Directory $work | Out-Null
  try {
    $name = "waft-$RELEASE_VERSION-$($platform -replace '/', '-').tar.gz"
    $url = "$Base/releases/$RELEASE_VERSION/$name"
    $archive = Join-Path $work 'bundle.tar.gz'
    [Console]::Error.WriteLine("downloading $url")
    Invoke-WebRequest -UseBasicParsing -Uri $url -OutFile $archive
    $found = (Get-FileHash -Algorithm SHA256 $archive).Hash.ToLowerInvariant()
    if ($found -ne $expected) {
      Stop-Install "$url does not match the release" "its SHA-256 is $found, expected $expected; nothing was changed"
    }
    [Console]::Error.WriteLine("checked: the SHA-256 that this script has for $name")
    & $tar -xzf $archive -C $work
    if ($LASTEXITCODE -ne 0) { Stop-Install 'the archive cannot be unpacked' 'nothing was changed' }
    Start-Setup (Join-Path $work "waft-$RELEASE_VERSION") $expected $work
  } finally {
    Remove-Item -Recurse -Force $work -ErrorAction SilentlyContinue
  }
}

# Runs a waft.cmd with variables that are set for it alone. Values of the user are variables and not arguments, in which
# cmd would give & and % a meaning.
function Invoke-Waft([string]$Command, [string[]]$Words, [hashtable]$Variables) {
  $before = @{}
  foreach ($name in $Variables.Keys) { $before[$name] = [Environment]::GetEnvironmentVariable($name) }
  try {
    foreach ($name in $Variables.Keys) { Set-Item -Path "Env:$name" -Value $Variables[$name] }
    & $Command @Words
  } finally {
    foreach ($name in $before.Keys) { Set-Item -Path "Env:$name" -Value $before[$name] }
  }
}

# Lets the unpacked waft install itself.
function Start-Setup([string]$Bundle, [string]$Digest, [string]$Work) {
  $bin = Get-Bin
  $words = @('self', 'install', '--sha256', $Digest, '--commit', $RELEASE_COMMIT, '--yes')
  if ($DryRun) { $words += '--dry-run' }
  $variables = @{ waft_cache = Join-Path $Work 'cache'; WAFT_INSTALL_DIR = $bin; WAFT_RELEASE_BASE = $Base }
  Invoke-Waft (Join-Path $Bundle 'waft.cmd') $words $variables
  if ($LASTEXITCODE -ne 0) { Stop-Install 'nothing was activated (see above)' }
  if ($DryRun) { return }
  if (-not $NoModifyPath -and -not $env:WAFT_NO_MODIFY_PATH) { Add-ToPath $bin }
  if ($Version -and $Version.TrimStart('v') -ne $RELEASE_VERSION) {
    Invoke-Waft (Join-Path $bin 'waft.cmd') @('version', 'install', $Version, '--use') @{ WAFT_RELEASE_BASE = $Base }
    if ($LASTEXITCODE -ne 0) { Stop-Install "$Version was not installed; $RELEASE_VERSION is active" }
  }
}

if (-not $Base) { $Base = $RELEASE_BASE }
$Base = $Base.TrimEnd('/')
if (-not (Test-Base $Base)) { Stop-Install "the release site $Base must use https" }
if ($Version -and $Version -notmatch '^[0-9A-Za-z.+-]+$') { Stop-Install "$Version is not the name of a version" }
if ($Uninstall) { Remove-Waft } else { Install-Waft }
