import {
  address,
  cidrs,
  count,
  duration,
  type FlagType,
  features,
  names,
  oneOf,
  optional,
  peerAddress,
  port,
  text,
  trueOrFalse,
  url,
  verbosity,
} from './flag-types.ts';

/** One flag of `drawbridge serve` and `revoke-all`. */
export interface Flag {
  readonly type: FlagType<unknown>;
  /**
   * Default: `DRAWBRIDGE_` and the name in upper case, with `_` for `-`. `false`: the flag has no
   * variable, and exists only for compatibility with kube-bind's konnector.
   */
  readonly env?: string | false;
  /** Counts if neither the flag nor the variable is given. Without it, the value is undefined. */
  readonly fallback?: string;
  /** The default in words, if it is not a single text, or depends on other flags. */
  readonly defaultInWords?: string;
  /** Sentences for `--help` and docs/reference/flags.md. */
  readonly help: string;
}

/** Flags by name, without the leading dashes. */
export type FlagTable = Readonly<Record<string, Flag>>;

const general = {
  features: {
    type: features,
    fallback: 'access',
    help: 'Features to run: access, binding, inventory, gateway, notify, or several separated by commas.',
  },
  kubeconfig: {
    type: optional(text('FILE')),
    env: 'KUBECONFIG',
    defaultInWords: 'in-cluster credentials, then ~/.kube/config',
    help: 'Kubeconfig of the cluster. The variable may list several files, as for kubectl.',
  },
  context: {
    type: optional(text('NAME')),
    defaultInWords: 'the current context',
    help: 'Context of the kubeconfig.',
  },
  'bind-address': {
    type: text('ADDRESS'),
    fallback: '0.0.0.0',
    help: 'Address that every port listens on. --server-address may name another one for its port.',
  },
  'health-port': {
    type: port,
    defaultInWords: '8081; 8090 if only binding runs',
    help: 'Port of /healthz, /livez, and /readyz, HTTP. 0 takes a free port.',
  },
  'metrics-port': {
    type: port,
    defaultInWords: '8080; a free port if only binding runs',
    help: 'Port of /metrics, HTTP. 0 takes a free port.',
  },
  'server-address': {
    type: optional(address),
    help: 'Address and port of the health endpoints in one value, for example :8090. Overrides --health-port.',
  },
  'audit-log': {
    type: text('FILE|-'),
    fallback: '-',
    help: 'File to which drawbridge appends the audit journal, one JSON line for each decision. - is standard output.',
  },
  identity: {
    type: optional(text('NAME')),
    defaultInWords: '$HOSTNAME and the process id; $POD_NAME if binding runs',
    help: 'Name of this replica in Leases, Events, audit lines, and audit heads.',
  },
  'log-level': {
    type: oneOf('error', 'warn', 'info', 'debug'),
    defaultInWords: 'info',
    help: 'Lowest level that the log shows. The log goes to standard error.',
  },
  'log-format': { type: oneOf('json', 'text'), defaultInWords: 'json', help: 'Format of the log.' },
  'logging-format': {
    type: oneOf('json', 'text'),
    env: false,
    defaultInWords: '--log-format',
    help: "Same as --log-format, which overrides it. For compatibility with kube-bind's konnector.",
  },
  v: {
    type: verbosity,
    env: false,
    defaultInWords: '--log-level',
    help: "4 or more means --log-level=debug. --log-level overrides it. For compatibility with kube-bind's konnector.",
  },
} as const satisfies FlagTable;

const leaderElection = {
  'leader-elect': {
    type: trueOrFalse,
    fallback: 'true',
    help: 'Elect a leader for each feature except the gateway. Set false only for a single replica.',
  },
  'lease-namespace': {
    type: optional(text('NAME')),
    defaultInWords: 'drawbridge-system; $POD_NAMESPACE, then kube-system, if only binding runs',
    help: 'Namespace of the Secrets, ConfigMaps, and Leases of drawbridge itself. --binding-lease-namespace may name another one for the Lease of binding.',
  },
  'binding-lease-namespace': {
    type: optional(text('NAME')),
    defaultInWords: '--lease-namespace',
    help: 'Namespace of the Lease of binding.',
  },
  'lease-name': {
    type: text('NAME'),
    fallback: 'kube-bind',
    help: "Name of the Lease of binding, which kube-bind's konnector uses too. The names of the other Leases are fixed: drawbridge-access, drawbridge-inventory, drawbridge-notify, and drawbridge-gateway-REPLICA for each replica of the gateway with sessions. With --certificates=own, another Lease has the name of --certificate-secret.",
  },
} as const satisfies FlagTable;

const webhooks = {
  port: { type: port, fallback: '9443', help: 'Port of the admission webhooks, HTTPS. 0 takes a free port.' },
  certificates: {
    type: oneOf('files', 'own'),
    fallback: 'files',
    help: 'files: serve the certificate in --cert-file and --key-file. own: drawbridge creates, renews, and registers its certificate.',
  },
  'cert-file': {
    type: text('FILE'),
    fallback: '/etc/drawbridge/tls/tls.crt',
    help: 'Serving certificate chain, PEM. Reloaded when the file changes.',
  },
  'key-file': {
    type: text('FILE'),
    fallback: '/etc/drawbridge/tls/tls.key',
    help: 'Private key of --cert-file, PEM. Reloaded when the file changes.',
  },
  'client-ca-file': {
    type: optional(text('FILE')),
    defaultInWords: 'no client certificate is required',
    help: 'Authorities, PEM. Callers of the webhooks must present a client certificate that one of them signed. Read at start.',
  },
  'certificate-secret': {
    type: text('NAME'),
    fallback: 'drawbridge-own-certificate',
    help: 'With --certificates=own: the Secret that holds the certificate.',
  },
  'certificate-names': {
    type: names,
    defaultInWords:
      'the Services of the features that run: drawbridge-webhook.NAMESPACE.svc, drawbridge-inventory-webhook.NAMESPACE.svc, the host of --callback-url, and drawbridge-gateway.NAMESPACE.svc',
    help: 'With --certificates=own: DNS names and IPv4 addresses of the certificate, separated by commas.',
  },
  'webhook-configurations': {
    type: names,
    defaultInWords: 'the webhook configurations of the features that run',
    help: 'With --certificates=own: mutating and validating webhook configurations whose caBundle and path drawbridge writes, separated by commas.',
  },
} as const satisfies FlagTable;

const access = {
  'max-grants-per-user': {
    type: count,
    fallback: '0',
    help: 'Open grants that one user may have at once: of PodAccessRequests and ExecAccessRequests together, in all namespaces. 0 is no limit.',
  },
  'max-grants-per-namespace': {
    type: count,
    fallback: '0',
    help: 'Open grants that one namespace may have at once. 0 is no limit.',
  },
  grantable: {
    type: optional(text('FILE')),
    defaultInWords: 'nothing',
    help: 'File that lists what templates may grant in addition to get and exec of the pod: a JSON list of PolicyRules, read at start. drawbridge must hold these permissions, too. The chart value grantable writes the file and grants the permissions.',
  },
  'access-pods': {
    type: oneOf('confined', 'oz'),
    fallback: 'confined',
    help: 'confined: access pods keep the labels by which NetworkPolicies select their workload, and run under the ServiceAccount default, unless their template keeps that of the workload. oz: access pods lose all labels of the workload and run under its ServiceAccount. Use oz only while you migrate from Oz.',
  },
  'trust-existing-templates': {
    type: trueOrFalse,
    fallback: 'false',
    help: 'Grant access through templates without an author. Never applies to templates that allow a privileged pod.',
  },
  'adopt-signing-keys': {
    type: trueOrFalse,
    fallback: 'false',
    help: 'Use key Secrets that existed before the first start, even if nothing proves that this installation used their keys.',
  },
  'break-glass-group': {
    type: optional(text('GROUP')),
    defaultInWords: 'no group',
    help: 'Group whose members may connect to access pods without a grant, if RBAC allows it. drawbridge records each such connection with a Warning Event.',
  },
} as const satisfies FlagTable;

const binding = {
  'provider-polling-interval': {
    type: duration(1000),
    fallback: '15s',
    help: 'How often drawbridge lists the exports of a bundle while it cannot watch them.',
  },
  bindable: {
    type: optional(names),
    defaultInWords: 'any resource',
    help: 'Exported resources that bindings may bind into this cluster, as RESOURCE.GROUP, separated by commas.',
  },
  'bindable-namespaces': {
    type: optional(names),
    defaultInWords: 'any namespace',
    help: 'Namespaces that drawbridge may create in this cluster for providers, separated by commas.',
  },
  'dry-run': {
    type: trueOrFalse,
    fallback: 'false',
    help: 'Change nothing: log what binding would write, and take no Lease. Only if binding runs alone.',
  },
} as const satisfies FlagTable;

const gateway = {
  'gateway-port': {
    type: port,
    fallback: '9445',
    help: 'Port of the aggregated API of the gateway, HTTPS. 0 takes a free port.',
  },
  'peer-address': {
    type: optional(peerAddress),
    defaultInWords: '--bind-address, if it is an IP address other than 0.0.0.0 and ::',
    help: 'IP address at which other replicas of the gateway reach this one. The chart passes that of the Pod.',
  },
  recordings: {
    type: optional(text('DIR|s3://BUCKET/PREFIX')),
    defaultInWords: 'sessions are not recorded',
    help: 'Folder or bucket in which the gateway stores the recordings of sessions: in a folder as NAMESPACE/SESSION.cast, in a bucket as NAMESPACE/SESSION/000001.cast and following. The folder or bucket must exist.',
  },
  's3-endpoint': {
    type: optional(text('URL')),
    env: 'AWS_ENDPOINT_URL_S3',
    defaultInWords: 'the server of AWS in --s3-region',
    help: 'URL of the S3 server of --recordings, https.',
  },
  's3-region': {
    type: optional(text('NAME')),
    env: 'AWS_REGION',
    defaultInWords: 'us-east-1 with --s3-endpoint; required without it',
    help: 'Region of the bucket of --recordings.',
  },
  'recording-retention': {
    type: duration(60_000),
    fallback: '720h',
    help: 'Time since the last byte of a recording after which the gateway deletes it. The gateway checks hourly, and deletes at most 1,000 recordings in a check.',
  },
} as const satisfies FlagTable;

const inventory = {
  'callback-url': {
    type: optional(url('http or https')),
    defaultInWords: 'https://drawbridge-callbacks.NAMESPACE.svc, in --lease-namespace',
    help: 'URL that components report to. Configure each component with the same URL; otherwise, it rejects the calls of drawbridge.',
  },
  'callback-port': {
    type: port,
    fallback: '9444',
    help: 'Port of the callbacks, HTTPS, or HTTP if --callback-url is http. 0 takes a free port.',
  },
  'component-api-url': {
    type: optional(url('https')),
    defaultInWords: 'the URL that this process uses',
    help: 'URL of the API server that components get with each call.',
  },
  'allow-loopback-http': {
    type: trueOrFalse,
    fallback: 'false',
    help: 'Allow components and callbacks without TLS on loopback addresses. For trials only.',
  },
} as const satisfies FlagTable;

const notify = {
  'notify-allow-cidrs': {
    type: optional(cidrs),
    defaultInWords: 'only public addresses',
    help: 'Private addresses that NotificationProviders may name besides public ones, as CIDRs separated by commas.',
  },
  'notify-addresses': {
    type: optional(text('FILE')),
    defaultInWords: 'only user names that are mail addresses',
    help: 'File with the mail addresses of users, for subscriptions to: Requester: a JSON object of addresses by user name, read at start. The chart value notify.addresses writes the file.',
  },
} as const satisfies FlagTable;

const revokeAll = {
  timeout: {
    type: duration(),
    fallback: '4m',
    help: 'How long drawbridge revoke-all waits for a server to close all access.',
  },
} as const satisfies FlagTable;

/** The flags by topic, in the order of `--help`. */
export const flagSections: Readonly<Record<string, FlagTable>> = {
  General: general,
  'Leader election': leaderElection,
  'Webhooks and certificates': webhooks,
  Access: access,
  Binding: binding,
  Inventory: inventory,
  Gateway: gateway,
  Notify: notify,
  'revoke-all': revokeAll,
};

/** All flags by name. */
export const flags = {
  ...general,
  ...leaderElection,
  ...webhooks,
  ...access,
  ...binding,
  ...inventory,
  ...gateway,
  ...notify,
  ...revokeAll,
};
