/**
 * The files of a release for other tools: release notes, a Homebrew formula, a manifest for scoop, and an action for
 * GitHub's workflows. In: the release's entry in the index, its site's address, the changelog. Out: texts by file name.
 * Invariant: every address is that of a file of this release, with its digest.
 */
import type { ReleaseArtifact, ReleaseEntry } from "../../project/versions/release_index.ts";

/** A release, as its manifests name it. */
interface DescribedRelease {
  readonly version: string;
  readonly entry: ReleaseEntry;
  /** The address of the release site. */
  readonly base: string;
}

const ABOUT = "WebAssembly runtime and compiler with deadlines, components and plugins";
const HOME = "https://waft.sh";
const LICENSE = "Apache-2.0";

/**
 * The part of a changelog about a version: its own, or the changes that no version has yet. Throws an Error if it has
 * neither.
 */
export function releaseNotes(changelog: string, version: string): string {
  const parts = changelog.split(/^(?=## )/m).slice(1);
  const about = (name: string) => parts.find((part) => new RegExp(`^## \\[?${name}\\b`).test(part));
  const part = about(version.replaceAll(".", "\\.")) ?? about("Unreleased");
  const text = part?.replace(/^## .*\n+/, "").trim() ?? "";
  if (text === "") throw new Error(`CHANGELOG.md says nothing about ${version}`);
  return `# waft ${version}\n\n${text}\n`;
}

/** The manifests of a release by file name; those of package managers need its single executables. */
export function releaseManifests(release: DescribedRelease): Map<string, string> {
  const manifests = new Map([["action.yml", workflowAction(release)]]);
  const formula = homebrewFormula(release);
  if (formula !== undefined) manifests.set("waft.rb", formula);
  const manifest = scoopManifest(release);
  if (manifest !== undefined) manifests.set("waft-scoop.json", manifest);
  return manifests;
}

function standalone({ entry }: DescribedRelease, platform: string): ReleaseArtifact | undefined {
  return entry.artifacts.find((each) => each.kind === "standalone" && each.platform === platform);
}

function address({ base }: DescribedRelease, { url }: ReleaseArtifact): string {
  return `${base.replace(/\/$/, "")}/${url}`;
}

/** A formula for Homebrew; undefined without an executable for macOS or Linux. */
function homebrewFormula(release: DescribedRelease): string | undefined {
  const systems = [["macos", "darwin"], ["linux", "linux"]].flatMap(([block, os]) => {
    const processors = [["arm", "arm64"], ["intel", "amd64"]].flatMap(([processor, arch]) => {
      const artifact = standalone(release, `${os}/${arch}`);
      return artifact === undefined ? [] : [`    on_${processor} do
      url "${address(release, artifact)}"
      sha256 "${artifact.sha256}"
    end
`];
    });
    return processors.length === 0 ? [] : [`  on_${block} do\n${processors.join("")}  end\n`];
  });
  if (systems.length === 0) return undefined;
  return `class Waft < Formula
  desc "${ABOUT}"
  homepage "${HOME}"
  version "${release.version}"
  license "${LICENSE}"

${systems.join("\n")}
  def install
    chmod 0755, "waft"
    bin.install "waft"
    generate_completions_from_executable(bin/"waft", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/waft --version")
    (testpath/"add.wat").write <<~WAT
      (module (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))
    WAT
    assert_equal "5", shell_output("#{bin}/waft run add.wat 2 3").chomp
  end
end
`;
}

/** A manifest for scoop; undefined without an executable for Windows. */
function scoopManifest(release: DescribedRelease): string | undefined {
  const artifact = standalone(release, "windows/amd64");
  if (artifact === undefined) return undefined;
  const manifest = {
    version: release.version,
    description: ABOUT,
    homepage: HOME,
    license: LICENSE,
    architecture: { "64bit": { url: address(release, artifact), hash: artifact.sha256 } },
    extract_dir: `waft-${release.version}`,
    bin: "waft.exe",
  };
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

/** A composite action that installs this release by its own installer, which checks the digests. */
function workflowAction({ version, base }: DescribedRelease): string {
  const site = `${base.replace(/\/$/, "")}/releases/${version}`;
  return `name: Install waft
description: Installs waft ${version} and adds it to the PATH of the steps that follow.
runs:
  using: composite
  steps:
    - if: runner.os != 'Windows'
      shell: sh
      run: |
        curl -fsSL "${site}/install.sh" -o "$RUNNER_TEMP/install-waft.sh"
        sh "$RUNNER_TEMP/install-waft.sh" --yes --no-modify-path --dir "$RUNNER_TEMP/waft-bin"
        echo "$RUNNER_TEMP/waft-bin" >> "$GITHUB_PATH"
    - if: runner.os == 'Windows'
      shell: pwsh
      run: |
        $ErrorActionPreference = 'Stop'
        Invoke-WebRequest "${site}/install.ps1" -OutFile "$env:RUNNER_TEMP/install-waft.ps1"
        & "$env:RUNNER_TEMP/install-waft.ps1" -Yes -NoModifyPath -Dir "$env:RUNNER_TEMP/waft-bin"
        "$env:RUNNER_TEMP/waft-bin" >> $env:GITHUB_PATH
`;
}
