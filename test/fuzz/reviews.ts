import fc from 'fast-check';
import { anyCharacter } from '../support/any-character.ts';
import { paths } from '../unit/admission/support.ts';
import { hostileValue } from './hostile-values.ts';
import type { ReferenceWorld } from './reference-policy.ts';

/** One input: the bytes of a call, and the state of the cluster. */
export interface FuzzCase {
  readonly path: string;
  readonly body: string;
  readonly world: ReferenceWorld;
}

const anything = fc.oneof(hostileValue, fc.jsonValue({ maxDepth: 3 }), fc.string());

/** Mostly a valid value. */
const mostly = <T>(fitting: fc.Arbitrary<T>, weight = 9): fc.Arbitrary<unknown> =>
  fc.oneof({ weight, arbitrary: fitting as fc.Arbitrary<unknown> }, { weight: 1, arbitrary: anything });
const often = fc.oneof({ weight: 6, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) });
/** Omits some of the fields. */
const sparse = <T extends Record<string, fc.Arbitrary<unknown>>>(fields: T): fc.Arbitrary<unknown> =>
  fc.record(fields, { requiredKeys: [], noNullPrototype: true });

const group = fc.constantFrom('devs', 'qa', 'firefighters', 'system:authenticated');
const groups = fc.oneof(
  { weight: 12, arbitrary: fc.uniqueArray(group, { maxLength: 4 }) },
  { weight: 1, arbitrary: fc.constant(['devs', 'system:unauthenticated']) },
);
const username = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom('alice', 'bob') },
  { weight: 1, arbitrary: fc.constantFrom('', 'system:anonymous', 'Alice', 'alice ') },
  { weight: 1, arbitrary: fc.string() },
);
const user = fc.record({ username, uid: fc.constantFrom('', 'u-1'), groups }, { noNullPrototype: true });
const duration = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom('30m', '1h', '1h30m', '90s', '2h', '1.5h') },
  { weight: 2, arbitrary: fc.constantFrom('0s', '1d', '-1h', '999ms', '+1h', '99999999h', 'µs', '1h 1m', '1e3s', '.') },
  { weight: 1, arbitrary: fc.string() },
);

const limit = fc.record({ open: fc.nat(5), limit: fc.integer({ min: 3, max: 9 }) });
const right = fc.constantFrom(
  'get pods',
  'watch pods',
  'create pods',
  'create pods/exec',
  'allow-privileged podaccesstemplates',
);
const template = fc.record({
  allowedGroups: fc.uniqueArray(group, { maxLength: 3 }),
  defaultDuration: fc.oneof({ weight: 8, arbitrary: fc.constant('1h') }, { weight: 1, arbitrary: duration }),
  maxDuration: fc.oneof({ weight: 8, arbitrary: fc.constantFrom('2h', '24h') }, { weight: 1, arbitrary: duration }),
  ready: fc.constantFrom(true, true, true, undefined, false),
  observed: often,
});
const world: fc.Arbitrary<ReferenceWorld> = fc.record({
  template: fc.option(template, { nil: undefined, freq: 12 }),
  holds: fc.boolean(),
  limits: fc.array(limit, { maxLength: 2 }),
  lacks: fc.oneof(
    { weight: 4, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(right, { maxLength: 2 }) },
  ),
  pod: fc.option(
    fc.record({
      ours: often,
      subjects: fc.subarray(['alice', 'bob', 'firefighters']),
      viaGateway: fc.constantFrom(false, false, false, true),
    }),
    { nil: undefined, freq: 8 },
  ),
  journalWorks: often,
});

type User = { readonly username: string; readonly uid: string; readonly groups: readonly string[] };

/** Usually the caller's own attestation. */
const attestationFor = (caller: User): fc.Arbitrary<unknown> => {
  const own = { ...caller, time: '2026-11-21T09:00:00Z' };
  return fc.oneof(
    { weight: 10, arbitrary: fc.constant<unknown>(own) },
    { weight: 1, arbitrary: fc.constant<unknown>({ ...own, groups: [...caller.groups, 'admins'] }) },
    { weight: 1, arbitrary: user.map((other): unknown => ({ ...own, ...other })) },
    { weight: 1, arbitrary: anything },
  );
};

const requestSpec = (caller: User): fc.Arbitrary<Record<string, unknown>> =>
  fc
    .tuple(
      fc.record({ templateName: mostly(fc.constant('payments-shell'), 20), requester: attestationFor(caller) }),
      sparse({ duration: mostly(duration), targetPod: mostly(fc.constant('web-0')), revoked: fc.boolean() }),
    )
    .map(([needed, optional]) => ({ ...needed, ...(optional as object) }));

const targetRef = fc.constant({ apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' });
const command = fc.oneof(
  { weight: 6, arbitrary: fc.constant('kubectl exec {{ .Metadata.Name }} -- sh') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      ...['{{ .Spec }}', 'a\nb', ' ', '{{ index .Metadata.Labels "a" }}{{'],
      ...[
        'kubectl exec {{ .Metadata.Name }} -- sh; id',
        'kubectl exec deploy/payments -- sh',
        'curl {{ .Metadata.Name }}',
        "kubectl exec {{ .Metadata.Name }} -- 'a' | sh",
      ],
    ),
  },
);
const templateSpec = fc
  .tuple(
    fc.record({
      accessConfig: mostly(
        fc
          .tuple(
            fc.record({ allowedGroups: mostly(groups) }),
            sparse({
              defaultDuration: mostly(duration),
              maxDuration: mostly(fc.constantFrom('2h', '24h', '24h', '24h', '24h', '876000h')),
              accessCommand: mostly(command),
            }),
          )
          .map(([needed, optional]) => ({ ...needed, ...(optional as object) })),
      ),
    }),
    sparse({
      controllerTargetRef: mostly(targetRef, 20),
      podSpec: mostly(fc.constant({ containers: [{ name: 'app', image: 'x' }] })),
      allowPrivilegedPod: fc.boolean(),
      maxCpu: mostly(fc.constantFrom('1', '500m', '-1')),
    }),
    fc.boolean(),
  )
  .map(([needed, optional, bare]) => ({
    ...needed,
    ...(bare
      ? { controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'p' } }
      : (optional as object)),
  }));

const metadata = mostly(
  sparse({
    name: fc.constant('req'),
    generateName: fc.constant('req-'),
    namespace: fc.constant('payments'),
    finalizers: mostly(fc.subarray(['access.drawbridge.dev/revoke', 'evil/finalizer'])),
    ownerReferences: anything,
    deletionTimestamp: fc.constant('2026-11-21T09:00:00Z'),
  }),
);

/** The old object: equal to the new one, or with one field added, removed, or changed. */
const before = (spec: Record<string, unknown>): fc.Arbitrary<unknown> =>
  fc.oneof(
    { weight: 2, arbitrary: fc.constant<unknown>(spec) },
    { weight: 2, arbitrary: fc.boolean().map((revoked): unknown => ({ ...spec, revoked })) },
    {
      weight: 3,
      arbitrary: fc
        .tuple(fc.constantFrom('templateName', 'duration', 'targetPod', 'requester', 'accessConfig', 'x'), anything)
        .map(([field, value]): unknown => ({ ...spec, [field]: value })),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom(...Object.keys(spec)).map((field): unknown => {
        const { [field]: _, ...rest } = spec;
        return rest;
      }),
    },
    { weight: 1, arbitrary: anything },
  );

const crdRoutes = [
  ['podaccessrequests', 'PodAccessRequest', [paths.attestPod, paths.validatePod]],
  ['execaccessrequests', 'ExecAccessRequest', [paths.attestExec, paths.validateExec]],
  ['podaccesstemplates', 'PodAccessTemplate', [paths.podTemplate]],
  ['execaccesstemplates', 'ExecAccessTemplate', [paths.execTemplate]],
] as const;

interface Call {
  readonly path: string;
  readonly request: Record<string, unknown>;
}

const crdCall: fc.Arbitrary<Call> = fc
  .tuple(
    fc.constantFrom(...crdRoutes),
    user,
    fc.constantFrom('CREATE', 'CREATE', 'CREATE', 'UPDATE', 'UPDATE', 'UPDATE', 'DELETE'),
  )
  .chain(([[resource, kind, routes], userInfo, operation]) =>
    fc
      .tuple(
        fc.constantFrom(...routes),
        resource.endsWith('requests') ? requestSpec(userInfo) : templateSpec,
        metadata,
        fc.boolean(),
      )
      .chain(([path, spec, meta, dryRun]) =>
        before(spec).map((specBefore) => {
          const object = { apiVersion: 'crds.wizardofoz.co/v1alpha1', kind, metadata: meta, spec };
          const oldObject = { ...object, spec: specBefore };
          const group = { group: 'crds.wizardofoz.co', version: 'v1alpha1' };
          return {
            path,
            request: {
              uid: 'review',
              kind: { ...group, kind },
              resource: { ...group, resource },
              name: 'req',
              namespace: 'payments',
              operation,
              userInfo,
              object: operation === 'DELETE' ? null : object,
              oldObject: operation === 'CREATE' ? null : oldObject,
              dryRun,
            },
          };
        }),
      ),
  );

const podCall: fc.Arbitrary<Call> = fc
  .record({
    path: fc.constantFrom(paths.guardPod, paths.guardPod, paths.guardGateway, paths.watchPod),
    userInfo: user,
    subResource: fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom('exec', 'attach', 'portforward', 'proxy', 'ephemeralcontainers') },
      { weight: 1, arbitrary: fc.constantFrom('log', '') },
    ),
    name: mostly(fc.constantFrom('req-1a2b3c4d-access', 'http:req-access:80', 'req-access:80', 'web-0')),
    object: mostly(
      sparse({ stdin: fc.boolean(), tty: fc.boolean(), container: mostly(fc.constant('app')), spec: anything }),
    ),
    operation: fc.constantFrom('CONNECT', 'CONNECT', 'CONNECT', 'UPDATE', 'CREATE'),
  })
  .map(({ path, ...fields }) => ({
    path,
    request: {
      uid: 'review',
      kind: { group: '', version: 'v1', kind: 'PodExecOptions' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      namespace: 'payments',
      oldObject: null,
      dryRun: false,
      ...fields,
    },
  }));

type Damage = (text: string) => string;

/** Replaces one value inside the review. */
const replaced: fc.Arbitrary<Damage> = fc.tuple(fc.nat(), anything, fc.boolean()).map(([pick, value, remove]) => {
  return (text: string): string => {
    const document = JSON.parse(text) as unknown;
    const places = placesIn(document);
    const place = places[pick % places.length];
    if (!place) return text;
    const { parent, key } = place;
    if (remove) delete parent[key];
    else parent[key] = value;
    return JSON.stringify(document);
  };
});

/** Duplicate keys, keys that break careless code, truncated texts, and bytes that are not JSON. */
const spliced: fc.Arbitrary<Damage> = fc
  .tuple(
    fc.nat(),
    fc.constantFrom(
      '"allowed":true,',
      '"userInfo":{"username":"alice","groups":["devs"]},',
      '"__proto__":{"groups":["devs"]},',
      '"constructor":{"prototype":{}},',
      '\u0000',
      '\\ud800',
      '[[[[[[[[',
      '}',
      ',',
      ' ',
    ),
    fc.boolean(),
  )
  .map(([at, text, atField]) => (body: string): string => {
    const fields = [...body.matchAll(/"\w+":/g)].map((match) => match.index);
    const place = atField ? (fields[at % Math.max(1, fields.length)] ?? 0) : at % (body.length + 1);
    return body.slice(0, place) + text + body.slice(place);
  });

const cut: fc.Arbitrary<Damage> = fc.nat().map((at) => (text: string) => text.slice(0, at % (text.length + 1)));
const none: Damage = (text) => text;
const damage: fc.Arbitrary<Damage> = fc.oneof(
  { weight: 14, arbitrary: fc.constant(none) },
  { weight: 4, arbitrary: replaced },
  {
    weight: 2,
    arbitrary: fc.tuple(replaced, replaced).map(
      ([one, two]) =>
        (text: string) =>
          two(one(text)),
    ),
  },
  { weight: 2, arbitrary: spliced },
  { weight: 1, arbitrary: cut },
);

const reviewBody = fc
  .tuple(fc.oneof({ weight: 3, arbitrary: crdCall }, { weight: 1, arbitrary: podCall }), damage)
  .map(([{ path, request }, harm]) => ({
    path,
    body: harm(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request })),
  }));

const anyBody = fc.record({
  path: fc.oneof(
    fc.constantFrom(...Object.values(paths)),
    fc.constantFrom('/', '/validate-', '/enforce-v1-pod/', '/%2e'),
  ),
  body: fc.oneof(fc.string({ unit: anyCharacter }), fc.json(), fc.constantFrom('', 'null', '[]', '{', '{}', '"', '0')),
});

export const fuzzCase: fc.Arbitrary<FuzzCase> = fc
  .tuple(fc.oneof({ weight: 15, arbitrary: reviewBody }, { weight: 1, arbitrary: anyBody }), world)
  .map(([call, around]) => ({ ...call, world: around }));

interface Place {
  readonly parent: Record<string, unknown>;
  readonly key: string;
}

function placesIn(value: unknown): Place[] {
  if (typeof value !== 'object' || value === null) return [];
  const parent = value as Record<string, unknown>;
  return Object.keys(parent).flatMap((key) => [{ parent, key }, ...placesIn(parent[key])]);
}
