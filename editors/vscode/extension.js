/**
 * The extension of Visual Studio Code: starts `waft debug --dap` for a debugging session, or connects it with the debug
 * server of a running program. In: the settings, configurations, a file that is to be debugged. Out: the command or the
 * server that serves the session. Loads nothing but the
 * interface of the editor; everything else happens in the command.
 */
"use strict";

const { execFile } = require("node:child_process");
const { commands, debug, DebugAdapterExecutable, DebugAdapterServer, env, Uri, window, workspace } = require("vscode");

const INSTALLING = "https://waft.sh/installing";

/** The command: from the settings. */
function command() {
  return workspace.getConfiguration("waft").get("path") || "waft";
}

/** Resolves when `file` answers; rejects with the reason. */
function requireCommand(file) {
  return new Promise((resolve, reject) => {
    execFile(file, ["--version"], { timeout: 30_000 }, (error) => error === null ? resolve() : reject(error));
  });
}

/** Says that the command does not start, and offers the page about installing it. */
function reportMissing(file, error) {
  const message = `${file} does not start (${error.code ?? error.message}): install waft, or set waft.path`;
  window.showErrorMessage(message, "Install").then((choice) => {
    if (choice === "Install") env.openExternal(Uri.parse(INSTALLING));
  });
  return new Error(message);
}

/** The configuration to debug a file. */
function launchOf(program) {
  return { type: "waft", request: "launch", name: "Debug a module", program };
}

exports.activate = (context) => {
  context.subscriptions.push(
    debug.registerDebugAdapterDescriptorFactory("waft", {
      async createDebugAdapterDescriptor(session) {
        const { request, port } = session.configuration ?? {};
        if (request === "attach") {
          if (!Number.isInteger(port)) throw new Error("attach needs the port of the program's debug server");
          return new DebugAdapterServer(port, "127.0.0.1");
        }
        const file = command();
        try {
          await requireCommand(file);
        } catch (error) {
          throw reportMissing(file, error);
        }
        const cwd = session.workspaceFolder?.uri.fsPath;
        return new DebugAdapterExecutable(file, ["debug", "--dap"], cwd === undefined ? {} : { cwd });
      },
    }),
    debug.registerDebugConfigurationProvider("waft", {
      /** Without launch.json, F5 debugs the module in the editor. */
      resolveDebugConfiguration(_folder, configuration) {
        if (configuration.type || configuration.request || configuration.name) return configuration;
        const document = window.activeTextEditor?.document;
        return document?.languageId === "wat" ? launchOf(document.fileName) : undefined;
      },
    }),
    commands.registerCommand("waft.debugFile", (uri) => {
      const file = uri ?? window.activeTextEditor?.document.uri;
      if (file === undefined) return undefined;
      return debug.startDebugging(workspace.getWorkspaceFolder(file), launchOf(file.fsPath));
    }),
  );
};
