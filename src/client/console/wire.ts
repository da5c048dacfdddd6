/**
 * What the page of the console and its server, a process of the client, say to each other. All
 * calls are on the page's own origin, and have the token in the header `tokenHeader`.
 */
export const tokenHeader = 'x-drawbridge-console';

export const paths = {
  /** GET: `Start`. */
  start: '/api/start',
  /** POST with a `RunCall`: `RunResult`. */
  run: '/api/run',
  /** GET with `?namespace=`, absent for all: one `LiveLine` a line, until the page closes it. */
  live: '/api/live',
  /** GET with `?namespace=&kind=&name=`: `RequestPage`. */
  request: '/api/request',
  /** GET with `?from=sessions|recordings&namespace=&name=`: asciicast, as it arrives. */
  cast: '/api/cast',
  /** GET: `Journal`. POST: reads the logs of the server. PUT with `?name=`: a file. DELETE: all. */
  journal: '/api/journal',
  /** GET with `?namespace=&name=`: `RunResult` of `audit verify` of the journal and that recording. */
  verdict: '/api/verdict',
  /** POST: the person is still there. */
  awake: '/api/awake',
} as const;

/** An answer with a status from 400. */
export interface Failure {
  readonly message: string;
}

export interface Start {
  readonly user: string;
  readonly groups: readonly string[];
  /** With which the page begins; undefined for all. */
  readonly namespace: string | undefined;
  readonly mayListAll: boolean;
  readonly server: string;
  readonly version: string;
  /** The clock of the API server, epoch ms: countdowns follow it. */
  readonly nowMs: number;
}

export interface RunCall {
  /** Words of a command on the list of `runs.ts`. */
  readonly command: string;
  /** Absent: all namespaces, for commands that list; otherwise that of the context. */
  readonly namespace?: string;
  /** Positional words: `pod/NAME`, never a file. */
  readonly args?: readonly string[];
  /** Values of flags by name, without `--`; true for a flag without a value. */
  readonly flags?: Readonly<Record<string, string | true>>;
}

export interface RunResult {
  readonly exitCode: number;
  /** Standard output: its JSON or, of a command that prints only text, the text. */
  readonly output: unknown;
  /** Lines of standard error, without the name of the program. */
  readonly messages: readonly string[];
  /** For a terminal. */
  readonly line: string;
}

/** All texts are from the cluster: the page shows them as text only. Times are epoch ms. */
export interface RequestRow {
  /** NAMESPACE/KIND/NAME. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Of `typeNames`. */
  readonly type: string;
  readonly template: string;
  readonly requester: string;
  readonly reason: string;
  /** Of the reason: an https URL of the template's author, or empty. */
  readonly link: string;
  readonly emergency: boolean;
  /** For how long, as `pending` prints it: `30m`, `30m more, until …`, or `default`. */
  readonly duration: string;
  readonly createdMs: number;
  /** Of `stateOf`: Waiting, Open, Ending, Denied, … */
  readonly state: string;
  readonly final: boolean;
  readonly why: string;
  readonly startsMs: number | undefined;
  readonly endsMs: number | undefined;
  readonly pod: string;
  /** A command, if it is usable. */
  readonly use: string;
  readonly claimable: boolean;
  /** The template has extensions left, as far as the request shows. */
  readonly extendable: boolean;
  readonly approvals: readonly string[];
  /** Of `awaitedDecision`, or empty. */
  readonly about: string;
  /** Of `choicesOf`, or empty. */
  readonly choice: string;
  readonly decideByMs: number | undefined;
}

export interface SessionRow {
  /** NAMESPACE/NAME. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly user: string;
  readonly pod: string;
  readonly container: string;
  /** `exec`, `exec -t`, `attach`, or `portforward`. */
  readonly stream: string;
  readonly startedMs: number;
  /** Its key. */
  readonly request: string;
}

/** One line of the live stream. The first lines have what exists, at most 500 rows each. */
export type LiveLine =
  | { readonly requests: readonly RequestRow[]; readonly removed?: readonly string[] }
  | { readonly sessions: readonly SessionRow[]; readonly removedSessions?: readonly string[] }
  /** All that exists has been sent. */
  | { readonly synced: true }
  /** Every 5 s, and when it changes: why the lists may be old, and the clock of the API server. */
  | { readonly beat: { readonly failing: string | undefined; readonly nowMs: number } };

export interface RequestPage {
  readonly row: RequestRow;
  readonly sections: readonly Section[];
  /** For `--template-version` of an approval; empty if the user may not read the template. */
  readonly templateVersion: string;
  /** Oldest first; empty if the user may not read them. */
  readonly events: readonly { readonly atMs: number; readonly reason: string; readonly message: string }[];
}

export interface Section {
  /** Empty for the first. */
  readonly title: string;
  readonly entries: readonly (readonly [label: string, lines: readonly string[]])[];
}

export interface Journal {
  readonly files: readonly { readonly name: string; readonly bytes: number; readonly from: 'pod' | 'file' }[];
  readonly problems: readonly string[];
}
