import type { GrantedRule, GrantSubject } from '../api/access/grant.ts';
import { uncovered } from '../rbac/rule-cover.ts';
import type { Refusal } from './answers.ts';
import type { Caller } from './caller.ts';

/** What a grant lets its subjects do. */
export interface Granted {
  readonly namespace: string;
  /** Name of the grant, which is also the name of its Role. */
  readonly name: string;
  readonly subjects: readonly GrantSubject[];
  readonly pod: string;
  readonly rules: readonly GrantedRule[];
}

/** A call below `grants/NAME/proxy`. */
export interface ProxyCall {
  readonly method: string;
  /** The path below `proxy`. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** The header `Upgrade`, in lower case; undefined without one. */
  readonly upgrade: string | undefined;
}

/** The streams that an upgrade can open. */
export type StreamKind = 'exec' | 'attach' | 'portforward';

/** What the gateway does with a call. */
export type Decision =
  /** Forwards a read to the API server. `follows`: whether the answer can continue without end, as that of a watch. */
  | { readonly kind: 'read'; readonly target: string; readonly follows: boolean }
  /** Forwards an upgrade to the API server. */
  | { readonly kind: 'stream'; readonly target: string; readonly stream: StreamKind; readonly options: StreamOptions }
  /** Answers with a discovery document. */
  | { readonly kind: 'document' }
  | { readonly kind: 'refusal'; readonly refusal: Refusal };

export type StreamDecision = Extract<Decision, { kind: 'stream' }>;
type RefusedCall = Extract<Decision, { kind: 'refusal' }>;

/** What the caller asked for with a stream. */
export interface StreamOptions {
  /** Undefined: the caller named no container. */
  readonly container: string | undefined;
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
  /** The words of the command of exec; empty for other streams. */
  readonly command: readonly string[];
}

/** `channel.k8s.io` has the same frames and channels as v4, but no exit code. */
export const channelProtocols: readonly string[] = ['v5.channel.k8s.io', 'v4.channel.k8s.io', 'channel.k8s.io'];
/** The subprotocols of WebSockets that the gateway can parse. In others, such as base64, it would not find the channels. */
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
 * The query parameters that the gateway passes on, by the kind of call: those that client-go can send. `timeout` is in every call of a
 * client with a time limit, as by `kubectl --request-timeout`. The API server checks it in reads, and ignores it in logs and streams.
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

/** The documents below `proxy` that clients ask for before any call of a pod. */
const documents: ReadonlySet<string> = new Set(['', '/api', '/api/v1', '/apis']);

/** Whether the call asks for a discovery document, which is the same for all grants. */
export const isDocument = ({ method, path, upgrade }: ProxyCall): boolean =>
  method === 'GET' && upgrade === undefined && documents.has(path);

/** The stream that the call asks for with a WebSocket, whether or not a grant allows it; undefined for any other call. */
export function webSocketStream({ method, path, upgrade }: ProxyCall): StreamKind | undefined {
  const last = path.slice(path.lastIndexOf('/') + 1);
  return method === 'GET' && upgrade === 'websocket' && isStreamKind(last) ? last : undefined;
}

/** Whether a client such as kubectl calls so after its WebSocket was refused. Older clients also begin with such a call. */
export const isRepeat = ({ method, upgrade }: ProxyCall): boolean => method === 'POST' && upgrade === 'spdy/3.1';

/** Whether the caller is a subject of the grant. Grants through the gateway have users only; groups never count. */
export const isSubject = ({ subjects }: Granted, { username }: Caller): boolean =>
  subjects.some(({ kind, name }) => kind === 'User' && name === username);

/** Decides what the gateway does with a call of a subject of the open grant. */
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
    return refusal(400, 'UnknownParameter', message);
  }
}

const isStreamKind = (text: string): text is StreamKind => streamKinds.includes(text);

/** Reads a boolean of a query as the API server does: a parameter without a value is true, and an absent one is false. */
const isTrue = (query: URLSearchParams, name: string): boolean => {
  const value = query.get(name)?.toLowerCase();
  return value !== undefined && value !== 'false' && value !== '0';
};

const withQuery = (path: string, query: URLSearchParams): string => (query.size === 0 ? path : `${path}?${query}`);

/** What the grant gives, as a clause for a refusal. */
function allowedText({ namespace, pod, rules }: Granted): string {
  const what = rules.flatMap(({ resources, verbs }) =>
    resources.map((resource) => `${verbs.join(', ')} on ${resource}`),
  );
  return `it gives ${what.join('; ')}, for pod ${pod} of namespace ${namespace} only`;
}

/** Maximum number of characters that a message quotes. */
const MAX_SHOWN = 120;
const shown = (text: string): string => JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text);

const refusal = (status: Refusal['status'], code: string, message: string): RefusedCall => ({
  kind: 'refusal',
  refusal: { status, code, message },
});
