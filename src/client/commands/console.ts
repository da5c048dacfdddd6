import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { sleep } from '../../kit/clock.ts';
import { CodedError, describe } from '../../kit/errors.ts';
import { requestResource, typeNames } from '../access-requests.ts';
import { type Args, usageProblem } from '../args.ts';
import { mayListAll } from '../cluster-connection.ts';
import type { Command, Context } from '../command.ts';
import { exits } from '../command-spec.ts';
import { handlersOf } from '../console/handlers.ts';
import { JournalFolder } from '../console/journal.ts';
import { type ConsoleServer, startConsole } from '../console/server.ts';
import { Problem } from '../problem.ts';

/** The page, by path, such as `/main.js`: gzip in base64. The build defines it. */
declare const CONSOLE_ASSETS: Readonly<Record<string, string>> | undefined;

const IDLE_MS = 30 * 60_000;
const CHECK_MS = 10_000;
const HINT_MS = 15_000;

export const openConsole: Command = {
  name: 'console',
  summary: 'Open a page in your browser for requests, approvals, sessions, and recordings',
  details:
    'Serves the page on this machine (127.0.0.1) for you alone, with your credentials, until Ctrl-C, or until you have not used it for 30 minutes. What the page does is what the commands of this program do, and it shows these. It begins with all namespaces if you may list their requests, otherwise with that of the context.',
  flags: [
    {
      name: 'port',
      value: 'NUMBER',
      help: 'The port, for links to the page. Choose one that no other user of the machine had. Default: a free one.',
    },
    {
      name: 'no-open',
      help: 'Open no browser, and print the URL instead. It contains a token: who has it can use the page as you.',
    },
  ],
  examples: ['console', 'console -n payments --port 7340'],
  async run(context) {
    const { args, io, clock } = context;
    const port = portOf(args);
    const connection = await context.connect();
    const { cluster } = connection;
    // A console without a cluster is useless, so this fails at once.
    await connection.whoAmI();
    const mayAll = await mayListAll(cluster, typeNames.map(requestResource));
    const namespace =
      args.has('all-namespaces') || (mayAll && args.text('namespace') === undefined) ? undefined : connection.namespace;
    const token = randomBytes(32).toString('base64url');
    const journal = new JournalFolder();
    const end = new AbortController();
    let file: string | undefined;
    let cancelHint = (): void => undefined;
    const removeFile = async (): Promise<void> => {
      cancelHint();
      if (file !== undefined) await rm(dirname(file), { recursive: true, force: true });
    };
    const timeout = args.text('request-timeout');
    const flags = timeout === undefined ? [] : [`--request-timeout=${timeout}`];
    const server = await startConsole({
      connection,
      clock,
      port,
      token,
      assets: typeof CONSOLE_ASSETS === 'undefined' ? {} : CONSOLE_ASSETS,
      handlers: handlersOf({ connection, clock, flags, journal, namespace, mayListAll: mayAll }),
      signal: end.signal,
      onFirstCall: removeFile,
    }).catch((error: unknown) => {
      throw portProblem(error, port);
    });
    try {
      const url = `http://127.0.0.1:${server.port}/`;
      const isOpened = !args.has('no-open');
      const shown = isOpened ? url : `${url}#${token}`;
      io.print(`console: ${shown} for you alone, until Ctrl-C, or until you have not used it for 30 minutes\n`);
      if (isOpened) {
        file = await writeOpenFile(`${url}#${token}`);
        const path = file;
        openBrowser(path).catch((error: unknown) => {
          io.printError(`cannot open a browser (${describe(error)}); open this file in yours: ${path}\n`);
        });
        // A browser in a sandbox has a folder /tmp of its own.
        cancelHint = clock.schedule(HINT_MS, () => {
          io.printError(`no page has come; if your browser cannot open ${path}, start again with --no-open\n`);
        });
      }
      await untilEnd(server, context);
      return exits.done;
    } finally {
      end.abort();
      await removeFile();
      await server.close();
      await journal.end();
      await cluster.close();
    }
  },
};

function portOf(args: Args): number {
  const text = args.text('port') ?? '0';
  if (/^\d{1,5}$/.test(text) && Number(text) < 65_536) return Number(text);
  throw usageProblem(`--port is ${JSON.stringify(text)}; it must be a number from 0 to 65535`, 'console');
}

/** A page that leads to `url`, whose token no argument of a process may have. */
async function writeOpenFile(url: string): Promise<string> {
  // The folder has mode 0700.
  const path = join(await mkdtemp(join(tmpdir(), 'drawbridge-console-')), 'open.html');
  const text = `<!doctype html><meta http-equiv="refresh" content="0;url=${url}"><title>drawbridge</title>\n`;
  await writeFile(path, text, { mode: 0o600 });
  return path;
}

/** Rejects if the program cannot start or fails. It may run as long as the browser. */
async function openBrowser(path: string): Promise<void> {
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open';
  // In a group of its own, because Ctrl-C would end the browser, too.
  const started = spawn(program, [path], { detached: true, stdio: 'ignore' });
  started.unref();
  const [code] = (await once(started, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`${program} exited with ${code}`);
}

function portProblem(error: unknown, port: number): unknown {
  if (!(error instanceof CodedError) || error.code !== 'PortUnavailable') return error;
  const what = `cannot listen on port ${port} of 127.0.0.1 (${describe(error.cause)})`;
  return new Problem(exits.failed, `${what}; end what uses it, or omit --port`);
}

/** Resolves at Ctrl-C, and once the console has not been used for long. */
async function untilEnd(server: ConsoleServer, { io, clock, signal }: Context): Promise<void> {
  while (!signal.aborted && server.idleMs() < IDLE_MS) await sleep(clock, CHECK_MS, signal).catch(() => undefined);
  if (!signal.aborted) io.printError('the console ends, because it was not used for 30 minutes\n');
}
