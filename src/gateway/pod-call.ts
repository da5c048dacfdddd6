import type { GrantedRule, GrantSubject } from '../api/access/grant.ts';
import { uncovered } from '../rbac/rule-cover.ts';
import type { Refusal } from './answers.ts';
import type { Caller } from './caller.ts';

export interface Granted {
  readonly namespace: string;
  /** Also the name of its Role. */
  readonly name: string;
  readonly subjects: readonly GrantSubject[];
  readonly pod: string;
  readonly rules: readonly GrantedRule[];
}

/** A call below `grants/NAME/proxy`. */
export interface ProxyCall {
  readonly method: string;
  /** Below `proxy`. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** The header `Upgrade`, in lower case. */
  readonly upgrade: string | undefined;
}

export type StreamKind = 'exec' | 'attach' | 'portforward';

export type Decision =
  /** Forwards a read. `follows`: the answer can go on without end, as that of a watch. */
  | { readonly kind: 'read'; readonly target: string; readonly follows: boolean }
  | { readonly kind: 'stream'; readonly target: string; readonly stream: StreamKind; readonly options: StreamOptions }
  | { readonly kind: 'document' }
  | { readonly kind: 'refusal'; readonly refusal: Refusal };

export type StreamDecision = Extract<Decision, { kind: 'stream' }>;
type RefusedCall = Extract<Decision, { kind: 'refusal' }>;

export interface StreamOptions {
  readonly container: string | undefined;
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
  /** Of exec; empty for other streams. */
  readonly command: readonly string[];
}

/** `channel.k8s.io` has the same frames and channels as v4, but no exit code. */
export const channelProtocols: readonly string[] = ['v5.channel.k8s.io', 'v4.channel.k8s.io', 'channel.k8s.io'];
/** In other subprotocols, such as base64, the gateway would not find the channels. */
export const streamProtocols: Readonly<Record<StreamKind, readonly string[]>> = {
  exec: channelProtocols,
  attach: channelProtocols,
  portforward: ['SPDY/3.1+portforward.k8s.io', 'v4.channel.k8s.io'],
};

const streamKinds: readonly string[] = ['exec', 'attach', 'portforward'] satisfies StreamKind[];

const stdio = ['container', 'stdin', 'stdout', 'stderr', 'tty'];
const listOptions = [
  'watch',
  'allowWatchBookmarks',
  'fieldSelector',
  'includeObject',
  'labelSelector',
  'limit',
  'continue',
  'pretty',
  'resourceVersion',
  'resourceVersionMatch',
  'sendInitialEvents',
  'shardSelector',
  'timeoutSeconds',
];

/**
 * What client-go can send; the gateway refuses other parameters. `timeout` is in every call of a
 * client with a time limit (`kubectl --request-timeout`), though logs and streams ignore it.
 */
const parameters: Readonly<Record<StreamKind | 'log' | 'get' | 'list', readonly string[]>> = {
  get: ['includeObject', 'pretty', 'resourceVersion', 'timeout'],
  list: [...listOptions, 'timeout'],
  log: [
    'container',
    'follow',
    'limitBytes',
    'pretty',
    'previous',
    'sinceSeconds',
    'sinceTime',
    'stream',
    'tailLines',
    'timeout',
    'timestamps',
  ],
  exec: [...stdio, 'command', 'timeout'],
  attach: [...stdio, 'timeout'],
  portforward: ['ports', 'timeout'],
};

/** Clients ask for these before any call of a pod. */
const documents: ReadonlySet<string> = new Set(['', '/api', '/api/v1', '/apis']);

/** The documents are the same for all grants. */
export const isDocument = ({ method, path, upgrade }: ProxyCall): boolean =>
  method === 'GET' && upgrade === undefined && documents.has(path);

/** The stream that a WebSocket asks for, allowed or not. */
export function webSocketStream({ method, path, upgrade }: ProxyCall): StreamKind | undefined {
  const last = path.slice(path.lastIndexOf('/') + 1);
  return method === 'GET' && upgrade === 'websocket' && isStreamKind(last) ? last : undefined;
}

/** kubectl calls so after its WebSocket was refused; older clients begin with it. */
export const isRepeat = ({ method, upgrade }: ProxyCall): boolean => method === 'POST' && upgrade === 'spdy/3.1';

/** Grants through the gateway have users only; groups never count. */
export const isSubject = ({ subjects }: Granted, { username }: Caller): boolean =>
  subjects.some(({ kind, name }) => kind === 'User' && name === username);

/** For a subject of the open grant. */
export function decide(call: ProxyCall, granted: Granted): Decision {
  const { method, path, query, upgrade } = call;
  if (isDocument(call)) return { kind: 'document' };
  if (path === '/version' && method === 'GET' && upgrade === undefined) {
    return { kind: 'read', target: path, follows: false };
  }
  const pods = `/api/v1/namespaces/${granted.namespace}/pods`;
  const pod = `${pods}/${granted.pod}`;
  if (path === pods && method === 'GET' && upgrade === undefined) {
    const watches = isTrue(query, 'watch');
    return decideRead('list', watches ? 'watch' : 'list', 'pods', watches);
  }
  if (path === pod && method === 'GET' && upgrade === undefined) return decideRead('get', 'get', 'pods', false);
  if (path === `${pod}/log` && method === 'GET' && upgrade === undefined) {
    return decideRead('log', 'get', 'pods/log', isTrue(query, 'follow'));
  }
  const stream = path.startsWith(`${pod}/`) ? path.slice(pod.length + 1) : '';
  if (isStreamKind(stream)) return decideStream(stream);
  return refusal(
    403,
    'NotGranted',
    `${method} ${shown(path)} is not part of grant ${granted.name}; ${allowedText(granted)}`,
  );

  function decideRead(what: 'get' | 'list' | 'log', verb: string, resource: string, follows: boolean): Decision {
    const denial = refuseUngranted(verb, resource) ?? refuseUnknownParameter(what);
    if (denial) return denial;
    const search = new URLSearchParams(query);
    // The pod of the grant is the only one that the caller may see.
    if (what === 'list') search.set('fieldSelector', `metadata.name=${granted.pod}`);
    return { kind: 'read', target: withQuery(path, search), follows };
  }

  function decideStream(kind: StreamKind): Decision {
    const denial = refuseUngranted('create', `pods/${kind}`) ?? refuseUnknownParameter(kind);
    if (denial) return denial;
    if (webSocketStream(call) === undefined) {
      // kubectl shows this text also after its WebSocket was refused, perhaps by another replica.
      const message =
        `${kind} came as ${method} with ${upgrade === undefined ? 'no upgrade' : `an upgrade to ${shown(upgrade)}`}; the gateway passes WebSockets only, which begin with GET; ` +
        'kubectl 1.31 and newer calls so if its WebSocket was refused: run the command again with -v=4, which shows why; an older kubectl must be replaced';
      return refusal(400, 'WebSocketRequired', message);
    }
    const options = {
      container: query.get('container') ?? undefined,
      stdin: isTrue(query, 'stdin'),
      stdout: isTrue(query, 'stdout'),
      stderr: isTrue(query, 'stderr'),
      tty: isTrue(query, 'tty'),
      command: query.getAll('command'),
    };
    return { kind: 'stream', target: withQuery(path, query), stream: kind, options };
  }

  function refuseUngranted(verb: string, resource: string): RefusedCall | undefined {
    const wanted = { apiGroups: [''], resources: [resource], resourceNames: [granted.pod], verbs: [verb] };
    if (uncovered(granted.rules, [wanted]).length === 0) return undefined;
    return refusal(
      403,
      'NotGranted',
      `grant ${granted.name} does not give ${verb} on ${resource}; ${allowedText(granted)}`,
    );
  }

  function refuseUnknownParameter(what: keyof typeof parameters): RefusedCall | undefined {
    const unknown = [...query.keys()].find((name) => !parameters[what].includes(name));
    if (unknown === undefined) return undefined;
    const message = `the query has ${shown(unknown)}; the gateway passes ${parameters[what].join(', ')}; remove the parameter`;
    return refusal(400, 'NotServed', message);
  }
}

const isStreamKind = (text: string): text is StreamKind => streamKinds.includes(text);

/** As the API server reads it: true without a value, false if absent. */
const isTrue = (query: URLSearchParams, name: string): boolean => {
  const value = query.get(name)?.toLowerCase();
  return value !== undefined && value !== 'false' && value !== '0';
};

const withQuery = (path: string, query: URLSearchParams): string => (query.size === 0 ? path : `${path}?${query}`);

/** A clause for a refusal. */
function allowedText({ namespace, pod, rules }: Granted): string {
  const what = rules.flatMap(({ resources, verbs }) =>
    resources.map((resource) => `${verbs.join(', ')} on ${resource}`),
  );
  return `it gives ${what.join('; ')}, for pod ${pod} of namespace ${namespace} only`;
}

/** Characters that a message quotes. */
const MAX_SHOWN = 120;
const shown = (text: string): string => JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text);

const refusal = (status: Refusal['status'], code: string, message: string): RefusedCall => ({
  kind: 'refusal',
  refusal: { status, code, message },
});
