import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { keyOf } from '../api/object.ts';
import { configMaps } from '../api/resources.ts';
import { headNames, readHeads } from '../audit/head.ts';
import { byteLines } from '../audit/verify/lines.ts';
import { RecordingsVerifier } from '../audit/verify/recordings.ts';
import type { VerifyReport } from '../audit/verify/report.ts';
import { reportText } from '../audit/verify/report-text.ts';
import { Verifier } from '../audit/verify/verifier.ts';
import { systemClock } from '../kit/clock.ts';
import { CodedError, describe, quote } from '../kit/errors.ts';
import { own } from '../kit/json-value.ts';
import { type Client, findObject } from '../kube/client.ts';
import { ambientCredentials } from '../kube/kubeconfig.ts';
import { openCluster } from '../kube/open-cluster.ts';

interface AuditIo {
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
  /** $KUBECONFIG. */
  readonly kubeconfigPaths?: string;
  /** Of the heads. Default: with the flag --kubeconfig, or `kubeconfigPaths`. */
  readonly cluster?: () => Promise<Pick<Client, 'get'>>;
}

const headsNames = new Intl.ListFormat('en', { type: 'disjunction' }).format(
  Object.values(headNames).map(({ heads }) => heads),
);

const usage = `Usage: drawbridge audit verify [flags] FILE|- ...

Checks audit journals against the signed heads of their chains. Finds every change, removal, insertion, or move of a line up
to the last head of its chain. Give the files of all replicas, including rotated ones, in any order. Ignores lines of
other programs.

  --heads FILE        the heads, as kubectl get configmap NAME -o json prints them; may be given more than once, for example
                      with older copies. Default: ${Object.values(headNames)
                        .map(({ heads }) => heads)
                        .join(' and ')} of the cluster
  --key KEY           public key that signs heads, in base64 or base64url; may be given more than once, for example with
                      the keys from before a rotation or an upgrade. Default: the key that each head names
  --recordings DIR    also check the recordings of sessions in a folder: the one of the gateway's flag --recordings, or
                      a copy of its bucket
  --session SESSION   of the recordings, check only that of this session
  --partial           accept that older lines, or all lines of some replicas, are absent
  -o, --output FORM   text or json (default text)
  --kubeconfig FILE   credentials for reading the heads; default: as drawbridge serve
  --namespace NAME    namespace of the heads in the cluster (default drawbridge-system)

Exit codes: 0 unchanged up to the last heads, 1 changed, 2 cannot be checked, 3 a chain has lines, but
no signed head covers any of them, or a recording has no line: without --partial, any; with
--session, that one.
`;

const exitCodes = { intact: 0, changed: 1, unsigned: 3 } as const satisfies Record<VerifyReport['verdict'], number>;
const CANNOT_CHECK = 2;

/** Resolves to the exit code in `usage`. Prints errors to `io.printError`; never rejects. */
export async function auditCommand(args: readonly string[], io: AuditIo): Promise<number> {
  try {
    const [command, ...rest] = args;
    if (args.includes('--help') || args.includes('-h')) {
      io.print(usage);
      return 0;
    }
    if (command !== 'verify')
      throw usageError(`unknown command ${quote(`audit ${command ?? ''}`)}; available command: audit verify`);
    const auditArgs = readArgs(rest);
    const report = await verify(auditArgs, io);
    io.print(auditArgs.json ? `${JSON.stringify(report, undefined, 2)}\n` : reportText(report));
    return exitCodes[report.verdict];
  } catch (error) {
    io.printError(`drawbridge audit: ${describe(error)}\n`);
    return CANNOT_CHECK;
  }
}

/** The usage describes each flag. */
type AuditArgs = ReturnType<typeof readArgs>;

function readArgs(args: readonly string[]) {
  const { values, positionals } = parseFlags(args);
  const { output = 'text' } = values;
  if (positionals.length === 0) throw usageError('no file is given; name the files to verify, or - for standard input');
  const duplicate = positionals.find((file, i) => positionals.indexOf(file) !== i);
  if (duplicate !== undefined) throw usageError(`${quote(duplicate, 256)} is given twice; name each file once`);
  if (output !== 'text' && output !== 'json') throw usageError(`--output is ${quote(output)}; it must be text or json`);
  return {
    files: positionals,
    heads: values.heads ?? [],
    keys: values.key?.map(readKey),
    partial: values.partial ?? false,
    recordings: values.recordings,
    session: values.session,
    json: output === 'json',
    kubeconfig: values.kubeconfig,
    namespace: values.namespace ?? 'drawbridge-system',
  };
}

/** In base64, as heads have it; the ConfigMaps of public keys have base64url. */
function readKey(text: string): string {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length === publicKeyBytes && /^[\w+/-]+=?$/.test(text)) return bytes.toString('base64');
  const lists = Object.values(headNames).map(({ keys }) => keys);
  throw usageError(
    `--key is ${quote(text)}; it must be a public key of ${publicKeyBytes} bytes, in base64 or base64url; copy it from the ConfigMap ${lists.join(' or ')}`,
  );
}

/** The length of an Ed25519 public key. */
const publicKeyBytes = 32;

function parseFlags(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        heads: { type: 'string', multiple: true },
        key: { type: 'string', multiple: true },
        partial: { type: 'boolean' },
        recordings: { type: 'string' },
        session: { type: 'string' },
        output: { type: 'string', short: 'o' },
        kubeconfig: { type: 'string' },
        namespace: { type: 'string' },
      },
    });
  } catch (error) {
    // Without Node's hint about arguments that begin with a dash.
    throw usageError((describe(error).split('\n')[0] ?? '').replace(/\. To specify.*$/, ''));
  }
}

const usageError = (message: string): CodedError =>
  new CodedError('InvalidArguments', `${message}; see drawbridge audit --help`);

async function verify(auditArgs: AuditArgs, io: AuditIo): Promise<VerifyReport> {
  const { keys, partial, recordings, session } = auditArgs;
  const recordingsVerifier = recordings === undefined ? undefined : new RecordingsVerifier(session);
  const verifier = new Verifier({ partial, ...(keys ? { keys } : {}) });
  for (const configMap of await headSources(auditArgs, io)) {
    const { heads, unreadable } = readHeads(configMap);
    for (const head of heads) verifier.head(head);
    for (const name of unreadable) verifier.unreadableHead(name);
  }
  for (const file of auditArgs.files) {
    await readLines(file, file === '-' ? io.stdin : createReadStream(file), verifier, recordingsVerifier);
  }
  const report = verifier.report();
  if (!recordingsVerifier || recordings === undefined) return report;
  const checked = await checkRecordings(recordingsVerifier, recordings, partial);
  const findings = [...report.findings, ...checked.findings];
  const { complete, incomplete, unchecked } = checked.report;
  const hasLines = session === undefined ? unchecked === 0 || partial : complete + incomplete > 0;
  const isUnproven = report.verdict === 'unsigned' || !hasLines;
  const verdict = findings.length > 0 ? 'changed' : isUnproven ? 'unsigned' : 'intact';
  return { ...report, verdict, findings, recordings: checked.report };
}

async function checkRecordings(verifier: RecordingsVerifier, folder: string, partial: boolean) {
  try {
    return await verifier.check(folder, partial);
  } catch (cause) {
    throw unreadable(
      `the recordings in ${quote(folder, 256)}`,
      cause,
      'name a folder that you may read, with the recordings of the gateway or a copy of its bucket',
    );
  }
}

async function readLines(
  file: string,
  chunks: AsyncIterable<Uint8Array>,
  verifier: Verifier,
  recordings: RecordingsVerifier | undefined,
): Promise<void> {
  let number = 0;
  try {
    for await (const line of byteLines(chunks)) {
      verifier.line(file, ++number, line);
      recordings?.line(line);
    }
  } catch (cause) {
    throw unreadable(quote(file, 256), cause, 'name a file that exists and that you may read, or - for standard input');
  }
  verifier.endOfFile();
}

/** Those of --heads, else of the cluster. Rejects if there are none. */
async function headSources({ heads, kubeconfig, namespace }: AuditArgs, io: AuditIo): Promise<unknown[]> {
  if (heads.length > 0) return Promise.all(heads.map(readHeadsFile));
  if (io.cluster) return headsIn(await io.cluster(), namespace);
  const { kubeconfigPaths: paths } = io;
  const credentials = await ambientCredentials({
    ...(kubeconfig ? { file: kubeconfig } : {}),
    ...(paths ? { paths } : {}),
  });
  const cluster = openCluster(credentials, { clock: systemClock });
  try {
    return await headsIn(cluster.client, namespace);
  } finally {
    await cluster.close();
  }
}

async function headsIn(client: Pick<Client, 'get'>, namespace: string): Promise<unknown[]> {
  const names = Object.values(headNames).map(({ heads: name }) => ({ namespace, name }));
  const found = await Promise.all(names.map((name) => findObject(client, configMaps, name, {})));
  const existing = found.filter((configMap) => configMap !== undefined);
  if (existing.length > 0) return existing;
  throw new CodedError(
    'HeadsMissing',
    `ConfigMap ${names.map(keyOf).join(' or ')} not found; set --namespace, or give the heads with --heads`,
  );
}

async function readHeadsFile(file: string): Promise<unknown> {
  try {
    const configMap: unknown = JSON.parse(await readFile(file, 'utf8'));
    if (own(configMap, 'kind') !== configMaps.kind) throw new Error('the file contains no ConfigMap');
    return configMap;
  } catch (cause) {
    throw unreadable(
      `heads from ${quote(file, 256)}`,
      cause,
      `name a file that you wrote with kubectl get configmap NAME -n drawbridge-system -o json, where NAME is ${headsNames}`,
    );
  }
}

const unreadable = (what: string, cause: unknown, remedy: string): CodedError =>
  new CodedError('FileUnreadable', `cannot read ${what}: ${describe(cause)}; ${remedy}`);
