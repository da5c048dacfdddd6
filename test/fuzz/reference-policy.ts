/**
 * A second implementation of the webhooks' denials, written from the documentation as simply as possible. It shares no code with the
 * server's rules. It may be more lenient than the server: the webhooks must deny every input that it denies.
 */

/** The cluster that the webhooks see during one review. */
export interface ReferenceWorld {
  /** Undefined: no template exists, under any name. */
  readonly template:
    | {
        readonly allowedGroups: readonly string[];
        readonly defaultDuration: string;
        readonly maxDuration: string;
        /** Whether `status.ready` is true and belongs to the current generation. */
        readonly ready: boolean | undefined;
        readonly observed: boolean;
      }
    | undefined;
  /** The caller already has the permissions of the template in the namespace. */
  readonly holds: boolean;
  readonly limits: readonly { readonly open: number; readonly limit: number }[];
  /** `verb resource` that RBAC denies to the caller. */
  readonly lacks: readonly string[];
  /** The pod that the call connects to. */
  readonly pod:
    | {
        readonly ours: boolean;
        readonly subjects: readonly string[];
        /** Whether the grant lets its subjects connect only through the gateway. */
        readonly viaGateway: boolean;
      }
    | undefined;
  readonly journalWorks: boolean;
}

export const breakGlassGroup = 'firefighters';

/** The reason why the webhook must deny `body` at `path`; undefined if this policy has none. */
export function mustRefuse(path: string, body: unknown, world: ReferenceWorld): string | undefined {
  const route = routeOf(path);
  if (!route) return 'no such webhook';
  const request = get(body, 'request');
  if (get(body, 'kind') !== 'AdmissionReview' || !isObject(request)) return 'no review';
  const resource = get(request, 'resource');
  if (get(resource, 'resource') !== route.resource || (get(resource, 'group') ?? '') !== route.group)
    return 'wrong kind';
  const user = userOf(request);
  if (!user) return 'no user';
  const review: Review = {
    user,
    operation: get(request, 'operation'),
    subResource: get(request, 'subResource'),
    object: get(request, 'object'),
    oldObject: get(request, 'oldObject'),
    dryRun: get(request, 'dryRun') === true,
  };
  return route.rule(review, world, route.resource);
}

interface User {
  readonly username: string;
  readonly groups: readonly string[];
}

interface Review {
  readonly user: User;
  readonly operation: unknown;
  readonly subResource: unknown;
  readonly object: unknown;
  readonly oldObject: unknown;
  readonly dryRun: boolean;
}

type Rule = (review: Review, world: ReferenceWorld, resource: string) => string | undefined;

function routeOf(path: string): { group: string; resource: string; rule: Rule } | undefined {
  if (path === '/watch-v1-pod') return { group: '', resource: 'pods', rule: () => undefined };
  if (path === '/enforce-v1-pod') return { group: '', resource: 'pods', rule: entering };
  if (path === '/gateway-v1-pod') return { group: '', resource: 'pods', rule: forwarding };
  const [, type, kind] = /^\/(mutate|validate)-crds-wizardofoz-co-v1alpha1-(\w+)$/.exec(path) ?? [];
  if (!kind) return undefined;
  const rule = kind.endsWith('template') ? writingTemplate : type === 'mutate' ? attesting : writingRequest;
  return { group: 'crds.wizardofoz.co', resource: `${kind}s`, rule };
}

const attesting: Rule = ({ operation, user, object }) => {
  if (!isObject(get(object, 'spec'))) return 'no spec';
  return operation === 'CREATE' && user.username === '' ? 'nobody' : undefined;
};

const writingRequest: Rule = (review, world, resource) => {
  if (review.operation === 'CREATE') return checkRequest(review, world, resource);
  if (review.operation === 'UPDATE') return checkChange(review, resource);
  return review.operation === 'DELETE' ? undefined : 'no such operation';
};

function checkRequest({ user, object }: Review, world: ReferenceWorld, resource: string): string | undefined {
  const spec = get(object, 'spec');
  const attestation = get(spec, 'requester');
  const { template } = world;
  if (user.username === '' || user.username === 'system:anonymous') return 'nobody';
  if (user.groups.includes('system:unauthenticated')) return 'nobody';
  if (get(attestation, 'username') !== user.username) return 'attestation of another user';
  const claimed = get(attestation, 'groups') ?? [];
  if (!Array.isArray(claimed) || claimed.some((group) => !user.groups.includes(group))) return 'claims a group';
  const name = get(spec, 'templateName');
  if (typeof name !== 'string' || name === '' || !template) return 'no template';
  if (template.ready === false && template.observed) return 'template not ready';
  if (!world.holds && !user.groups.some((group) => template.allowedGroups.includes(group)))
    return 'in no allowed group';
  const bounds = [template.defaultDuration, template.maxDuration];
  const asked = get(spec, 'duration') ?? '';
  if ([...bounds, ...(asked === '' ? [] : [asked])].some((text) => !(secondsOf(text) > 0.999))) return 'duration';
  const pod = get(spec, 'targetPod') ?? undefined;
  if (resource.startsWith('exec') && pod !== undefined && !(typeof pod === 'string' && /^[a-z0-9.-]+$/.test(pod))) {
    return 'target pod';
  }
  if (get(spec, 'revoked') === true) return 'revoked already';
  if (world.limits.some(({ open, limit }) => open >= limit)) return 'no room';
  return world.journalWorks ? undefined : 'no journal';
}

/** The only allowed change of a request is `revoked`, from false to true. */
function checkChange({ object, oldObject }: Review, resource: string): string | undefined {
  const [now, before] = [get(object, 'spec'), get(oldObject, 'spec')];
  // A client may change metadata of any spec.
  if (same(now, before)) return undefined;
  // Only one kind of request names a pod; in the others the API server prunes the field.
  const fields = ['templateName', 'duration', ...(resource.startsWith('exec') ? ['targetPod'] : [])];
  for (const field of fields) {
    const [is, was] = [get(now, field) || undefined, get(before, field) || undefined];
    if (!same(is, was)) return `${field} changed`;
  }
  if (!same(attestationOf(now), attestationOf(before))) return 'attestation changed';
  return get(before, 'revoked') === true && get(now, 'revoked') !== true ? 'takes back a revocation' : undefined;
}

/** Unset fields of an attestation count as empty. */
function attestationOf(spec: unknown): unknown {
  const attestation = get(spec, 'requester');
  if (!isObject(attestation)) return attestation ?? undefined;
  return {
    username: get(attestation, 'username') ?? '',
    time: get(attestation, 'time') ?? '',
    uid: get(attestation, 'uid') ?? '',
    groups: get(attestation, 'groups') ?? [],
  };
}

const placeholders = /\{\{ *(\.Metadata\.(Name|Namespace)|index +\.Metadata\.(Labels|Annotations) +"[^"\\{}]+") *\}\}/g;

const writingTemplate: Rule = ({ operation, object, oldObject }, world, resource) => {
  const spec = get(object, 'spec');
  if (operation === 'UPDATE' && same(spec, get(oldObject, 'spec'))) return undefined;
  const config = get(spec, 'accessConfig');
  const groups = get(config, 'allowedGroups');
  if (!Array.isArray(groups) || groups.some((group) => typeof group !== 'string' || group === '')) return 'groups';
  const standard = secondsOf(get(config, 'defaultDuration') ?? '1h');
  const longest = secondsOf(get(config, 'maxDuration') ?? '24h');
  if (!(standard > 0.999 && longest > 0.999 && longest < 3.2e8)) return 'durations';
  if (standard > longest * 1.000001) return 'default above maximum';
  const command = get(config, 'accessCommand') ?? 'kubectl exec {{ .Metadata.Name }}';
  if (typeof command !== 'string' || command.trim() === '') return 'command';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a command must not contain these
  if (command.replace(placeholders, '').includes('{{') || /[\u0000-\u001f]/.test(command.trim())) return 'command';
  if (!/^\s*(kubectl|oc) /.test(`${command} `)) return 'command of something else';
  if (/[;&|<>$`]/.test(command.replace(/'[^']*'/g, ''))) return 'command for the shell of the requester';
  if (!/\{\{ *\.Metadata\.Name *\}\}/.test(command)) return 'command without the pod';
  const pod = resource.startsWith('pod');
  if (!get(spec, 'controllerTargetRef') && !(pod && get(spec, 'podSpec'))) return 'no target';
  const handsOut = ['get pods', 'list pods', 'watch pods', 'get pods/exec', 'create pods/exec'];
  if (pod) handsOut.push('create pods');
  if (get(spec, 'allowPrivilegedPod') === true) handsOut.push(`allow-privileged ${resource}`);
  const lacking = handsOut.find((right) => world.lacks.includes(right));
  return lacking === undefined ? undefined : `author may not ${lacking}`;
};

/** Only subjects of the grant may connect to an access pod. The policy does not cover other pods. */
const entering: Rule = ({ user }, { pod, journalWorks }) => {
  if (!pod) return 'no such pod';
  if (!pod.ours || (pod.subjects.includes(user.username) && !pod.viaGateway)) return undefined;
  return user.groups.includes(breakGlassGroup) && journalWorks ? undefined : 'not let in';
};

/** The gateway connects only by the calls that it forwards, and only to pods of grants. */
const forwarding: Rule = ({ subResource }, { pod }) => {
  if (!pod) return 'no such pod';
  if (!['exec', 'attach', 'portforward'].includes(String(subResource))) return 'not forwarded';
  return pod.viaGateway ? undefined : 'no grant for the gateway';
};

function userOf(request: unknown): User | undefined {
  const info = get(request, 'userInfo');
  const username = get(info, 'username') ?? '';
  const groups = get(info, 'groups') ?? [];
  const isUser = isObject(info) && typeof username === 'string' && Array.isArray(groups);
  return isUser ? { username, groups } : undefined;
}

const units: Readonly<Record<string, number>> = {
  ns: 1e-9,
  us: 1e-6,
  µs: 1e-6,
  μs: 1e-6,
  ms: 1e-3,
  s: 1,
  m: 60,
  h: 3600,
};

/** Seconds of a Go duration; NaN if the text is not one. */
function secondsOf(text: unknown): number {
  if (typeof text !== 'string' || !/^\+?((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$/.test(text)) return Number.NaN;
  let seconds = 0;
  for (const [, digits = '', unit = ''] of text.matchAll(/([\d.]+)([a-zµμ]+)/g))
    seconds += Number(digits) * (units[unit] ?? 0);
  return seconds;
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function get(value: unknown, field: string): unknown {
  return isObject(value) && Object.hasOwn(value, field) ? (value as Record<string, unknown>)[field] : undefined;
}

/** Equal as JSON, in any order of fields. */
function same(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => same(item, b[i]));
  if (!isObject(a) || !isObject(b) || Array.isArray(a) || Array.isArray(b))
    return (a ?? undefined) === (b ?? undefined);
  const fields = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...fields].every((field) => same(get(a, field), get(b, field)));
}
