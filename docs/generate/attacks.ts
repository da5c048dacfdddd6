/**
 * The attacks that we know of, for docs/security/attacks.md. Texts are Markdown; links are relative to that page.
 * An attack stands once, with the feature that stops it.
 */
export interface Attack {
  readonly attack: string;
  readonly by: readonly Attacker[];
  /** `Nothing`, if nothing stops it. */
  readonly stopped: string;
  readonly remains?: string;
  /** Files below test/, without `.test.ts`; those of integration tests are below test/integration/. */
  readonly tests: readonly string[];
}

type Attacker = keyof typeof attackers;

/** What each attacker starts with. */
export const attackers = {
  colleague: 'may create, delete, patch, and update requests, as `examples/rbac.yaml` allows',
  requester: 'created the request',
  voter: 'may create votes, and may hold the verb `approve` on the template',
  editor: 'may create and enter Pods in the namespace and, if granted, write templates',
  'status writer': 'may write the status of requests. Grant no user that permission',
  subject: 'may use a Gateway grant',
  auditor: 'has the ClusterRole `drawbridge-session-auditor`',
  thief:
    'has the token of the feature’s ServiceAccount, or controls its process. That of the gateway may enter every Pod where access opens (chart value `namespaces`), and read its logs',
  'thief of access': 'is the thief with the token of `drawbridge`',
  'storage user': 'may read or write the volume or bucket of recordings',
  component: 'has the ServiceAccounts and tokens that a component gets; it is faulty, or an attacker controls it',
  'token thief': 'has the token of a run, or of a call to a component',
  'entry writer': 'may write entries in one namespace',
  'registration writer': 'may write registrations. Trusted, because a registration says where tokens go',
  provider: 'runs a bound cluster, administers it, or has broken into it',
  'other consumer': 'is another consumer of the same provider',
  outsider: 'has other permissions, if the row names any. Rows for outsiders cover accidents, too',
} as const;

const access: readonly Attack[] = [
  {
    attack: 'use the access that another user requested',
    by: ['colleague'],
    stopped: 'The RoleBinding names only the requester.',
    remains: 'With `grantTo: AllowedGroups`, all members of `allowedGroups` may use it.',
    tests: ['access/subjects', 'access/expiry'],
  },
  {
    attack: 'request access without being in an allowed group',
    by: ['colleague'],
    stopped:
      'The webhook and the leader compare the caller’s groups with the template. A caller in no allowed group must already hold what the template grants.',
    remains: 'A user who leaves the group after the request keeps the access.',
    tests: ['access/allowed-groups', 'access/dead-ends'],
  },
  {
    attack: 'request access in another user’s name or without a name, or change the requester later',
    by: ['colleague'],
    stopped:
      'The webhook writes the caller’s name into the request and signs it. It denies calls without a name, and later changes.',
    tests: ['access/requester', 'unit/access/policy/request-policy'],
  },
  {
    attack: 'request access without the webhooks, with a missing, copied, or old attestation',
    by: ['outsider'],
    stopped:
      'The leader verifies the signature of requester, name, namespace, and spec. It accepts only requests that were created within 10 s after it.',
    remains: 'If a user removes the request’s finalizer, the signature may count twice ([limits](limits.md#forgery)).',
    tests: ['access/without-webhooks'],
  },
  {
    attack: 'change the template, duration, or Pod of a granted request',
    by: ['colleague'],
    stopped: 'CEL rules of the CRD and the webhook deny it, even for unset fields.',
    tests: ['access/immutable-spec', 'access/policies', 'fuzz/admission'],
  },
  {
    attack: 'widen a grant by changing its template',
    by: ['editor'],
    stopped:
      'The grant is signed and stored before its objects are created. Later edits may end it sooner, but add no permissions or subjects.',
    remains: 'An edit of `extension` applies to open grants.',
    tests: ['access/template-edits', 'access/rules'],
  },
  {
    attack: 'write a template with permissions that its author lacks, or for `system:authenticated`',
    by: ['editor'],
    stopped:
      'The webhook signs the author into the template. The leader grants only what the author holds, and nothing to groups named `system:…`.',
    remains: 'The check is weaker for some authors ([limits](limits.md#templates-and-requests)).',
    tests: ['access/template-authors'],
  },
  {
    attack: 'use the server’s permissions',
    by: ['thief'],
    stopped: 'RBAC and admission policies limit the token to [these permissions](../reference/token-permissions.md).',
    remains:
      'A thief can let users enter Pods, create Pods, end any access, read the signing keys, and in certificate mode `own` break the webhooks.',
    tests: ['chart/tokens', 'access/policies'],
  },
  {
    attack: 'define a privileged access pod, or one with another ServiceAccount, in a template',
    by: ['editor'],
    stopped:
      'Such a Pod needs `allowPrivilegedPod`, and an author with the verb `allow-privileged` on the template. Beyond baseline, a policy requires the label `access.drawbridge.dev/allow-privileged` on the Namespace.',
    tests: ['access/pod-security', 'access/policies', 'fuzz/pod-reach'],
  },
  {
    attack: 'send the traffic of a Service to the access pod, by mistake',
    by: ['editor'],
    stopped:
      'The access pod keeps only those labels of the workload by which NetworkPolicies select it. If a Service, PodDisruptionBudget, or other NetworkPolicy would select it, the request is denied, unless `allowedSelectors` lists that.',
    remains: 'Objects that are created later are not checked.',
    tests: ['access/service-selectors', 'unit/access/builders/pod-selection'],
  },
  {
    attack: 'send Secrets past the NetworkPolicy of the workload',
    by: ['colleague'],
    stopped:
      'If NetworkPolicies isolate the workload’s egress, but not the access pod’s, the request is denied (`ConfinementLost`).',
    remains:
      'Policies of network plug-ins are not read. With [`accessPods: oz`](../concepts/access-pods.md#compatibility-with-oz), nothing is checked.',
    tests: ['access/service-selectors', 'unit/access/builders/pod-selection'],
  },
  {
    attack: 'use the cloud identity of the workload',
    by: ['colleague'],
    stopped:
      'The access pod runs under the ServiceAccount `default`, unless the template sets `keepServiceAccount`, or sets `allowPrivilegedPod` and names another.',
    remains: 'With `accessPods: oz`, or if the workload itself runs under `default`, both have one identity.',
    tests: ['access/service-selectors', 'access/oz-manifests', 'unit/access/builders/pod-access-builder'],
  },
  {
    attack: 'give the access pod a cloud identity or a sidecar by annotations of the workload',
    by: ['editor'],
    stopped: 'Annotations of well-known programs that add identities, secrets, or sidecars are not copied.',
    remains: 'Other programs may act on the annotations that are copied.',
    tests: ['unit/access/builders/copied-annotations'],
  },
  {
    attack: 'crash the server with an invalid template',
    by: ['editor'],
    stopped: 'The code that plans access pods returns a result or an error for every input.',
    tests: ['fuzz/builders'],
  },
  {
    attack: 'keep access by another finalizer or owner of the request',
    by: ['colleague'],
    stopped:
      'The webhook removes both from new requests. The server deletes the grant’s objects even if a finalizer keeps the request.',
    tests: ['access/foreign-finalizers', 'access/revocation'],
  },
  {
    attack: 'delete the request but keep the objects of its grant, uninstall the chart, or delete the CRDs',
    by: ['colleague', 'outsider'],
    stopped:
      'A finalizer keeps the request until these objects are gone. Without it, the janitor deletes them. Before Helm uninstalls the chart, a Job revokes every grant.',
    remains: 'The Job can be disabled (`uninstall.revoke=false`, `--no-hooks`).',
    tests: ['access/expiry', 'access/janitor', 'chart/access-install', 'faults/access/crds-deleted'],
  },
  {
    attack: 'put a finalizer on the objects of a grant',
    by: ['editor'],
    stopped:
      'An admission policy denies it. If a finalizer keeps a deleted RoleBinding, the server removes its subjects.',
    remains: 'Without the policy, access can stay open ([limits](limits.md#forgery)).',
    tests: ['unit/access/lifecycle/request-lifecycle', 'access/policies'],
  },
  {
    attack: 'delete the template, so that the server never ends its grants',
    by: ['editor'],
    stopped: 'All grants of a deleted template end at once.',
    remains: 'So the attacker can end the access of other users.',
    tests: ['access/expiry', 'access/template-edits'],
  },
  {
    attack: 'delay expiry with many requests',
    by: ['colleague'],
    stopped: 'In the queue, ends of access come before decisions, and some workers are reserved for them.',
    tests: ['faults/access/busy-queue', 'faults/access/burst', 'faults/admission/under-attack'],
  },
  {
    attack: 'rely on clocks that differ, or that were set back',
    by: ['outsider'],
    stopped: 'The leader ends the grant when its wall or its monotonic clock has reached the end.',
    remains: 'If it was set back before the leader started, a grant lasts longer, at most by the granted time.',
    tests: ['access/clock'],
  },
  {
    attack: 'reach several Pods of a workload in turn, or Pods of another workload with the same labels',
    by: ['colleague', 'editor'],
    stopped:
      'The server chooses the Pod once, and the workload must control it. The grant ends when the Pod with that uid is deleted.',
    remains: 'Until the server sees that, the grant also covers a new Pod of the same name.',
    tests: ['access/chosen-pod', 'access/targets', 'access/expiry'],
  },
  {
    attack:
      'forge a status: to get a grant, enter another Pod, make a Gateway grant direct, raise its idle limit, or change what is recorded',
    by: ['status writer'],
    stopped:
      'An admission policy lets only the server write the status. The server revokes a grant without a valid MAC, which covers its session settings.',
    tests: ['access/forged-status', 'access/policies', 'unit/access/lifecycle/gateway-grants'],
  },
  {
    attack: 'create the Pod, Role, or RoleBinding before the server does',
    by: ['editor'],
    stopped:
      'An admission policy lets only the server create objects with the label `access.drawbridge.dev/request`. The server overwrites no object, and uses one only with the right marks and owner.',
    remains: 'Without the policy, it may adopt a forged Pod ([limits](limits.md#forgery)).',
    tests: ['access/premade-objects', 'access/policies', 'unit/rbac/applier'],
  },
  {
    attack:
      'hide code in the access command, which users paste into their shell, or in labels and annotations that it contains',
    by: ['editor', 'colleague'],
    stopped:
      'In every shell, the command is one call of `kubectl` or `oc` to the granted Pod. Verb and options come from lists, values are quoted, and no character is invisible.',
    tests: ['unit/access/policy/access-command', 'client/shell-words', 'access/validation'],
  },
  {
    attack: 'stay in an open stream after the end of the grant',
    by: ['colleague', 'subject'],
    stopped:
      'The node kills all that runs in a deleted access pod, [usually within seconds](limits.md#open-sessions). The gateway ends its streams with the grant.',
    remains: 'A direct stream into a running Pod of a workload stays open.',
    tests: ['access/expiry', 'access/revocation', 'e2e/access', 'e2e/gateway'],
  },
  {
    attack: 'use attach, port forwarding, the proxy, or ephemeral containers instead of exec',
    by: ['editor'],
    stopped: 'The webhooks for entries into Pods are registered for all five.',
    remains: 'While no replica answers, entries into Pods that are no access pods leave no record.',
    tests: ['access/pod-entry', 'access/exec-guard'],
  },
  {
    attack: 'reach the kubelet by `nodes/proxy`',
    by: ['outsider'],
    stopped: 'Nothing',
    remains: 'The webhooks see calls to Pods, and this is a call to a node ([limits](limits.md#other-ways-in)).',
    tests: [],
  },
  {
    attack: 'exec with an HTTP GET, for which some API servers require only the verb `get`',
    by: ['colleague'],
    stopped:
      'A grant’s Role allows exec at most on the granted Pod, with both verbs. The API server calls the webhooks for GET and POST.',
    tests: ['access/pod-entry', 'access/exec-guard'],
  },
  {
    attack: 'open more and more grants',
    by: ['colleague'],
    stopped: 'The leader limits the open grants of a user, of a namespace, and of a template.',
    remains: 'These limits are off until you set them.',
    tests: ['access/limits'],
  },
  {
    attack: 'copy the ServiceAccount token from an access pod',
    by: ['colleague'],
    stopped: 'The kubelet adds no token, unless the template sets `automountServiceAccountToken: true`.',
    remains:
      'Projected token volumes of the workload are copied. Their tokens are those of the access pod’s ServiceAccount.',
    tests: ['unit/access/builders/pod-access-builder'],
  },
  {
    attack: 'write a rule that applies to more than the granted Pod',
    by: ['editor'],
    stopped: 'The server sets the name of the granted Pod in each rule of the template.',
    tests: ['access/rules', 'unit/access/lifecycle/granted-rules'],
  },
  {
    attack: 'enter an access pod directly, with the attacker’s own permissions',
    by: ['editor', 'subject'],
    stopped:
      'The guard admits only the users whom a direct grant names, and the break-glass group. Administrators are not exempt.',
    remains: 'Pods of a workload have no guard.',
    tests: ['access/exec-guard', 'access/gateway-sessions'],
  },
  {
    attack: 'change the objects of a grant',
    by: ['editor'],
    stopped:
      'Admission policies deny changes of marks, rules, subjects, images, and resources. Ephemeral containers must satisfy baseline, unless the Namespace allows more.',
    remains: 'A user with permission can delete these objects.',
    tests: ['access/policies'],
  },
  {
    attack: 'break glass without being noticed',
    by: ['editor'],
    stopped:
      'Without a grant, the guard admits only members of `--break-glass-group`. Each entry needs a line in the journal, and causes a Warning Event.',
    tests: ['access/exec-guard', 'unit/admission/pod-guard'],
  },
  {
    attack: 'make the node call other hosts, such as a metadata service, by a probe or a hook of an access pod',
    by: ['editor'],
    stopped:
      'The server denies `host` in both (`PodReachesTooFar`), unless an administrator [allows it](../concepts/template-authors.md#privileged-pods).',
    tests: ['access/pod-security', 'unit/access/builders/pod-security-baseline'],
  },
  {
    attack: 'show a forged grant to a system that trusts grants',
    by: ['outsider'],
    stopped:
      'Each grant has an Ed25519 signature, which that system can [verify](../tasks/signing-keys.md#verify-a-grant-elsewhere) with the public keys that the server lists.',
    remains: 'A reader of the keys, or a writer of that list, can forge grants ([limits](limits.md#forgery)).',
    tests: ['access/forged-status'],
  },
];

const approvals: readonly Attack[] = [
  {
    attack: 'forge a vote, a claim, or an extension, also while no webhook is registered',
    by: ['voter', 'requester'],
    stopped:
      'The webhook signs each, votes with the voter’s name. Without a valid signature, none counts. Admission policies reject unsigned ones, and votes that name another user than their creator.',
    tests: ['access/vote-attacks', 'access/approvals', 'access/extend'],
  },
  {
    attack: 'copy a vote under another name, or replay it for another request',
    by: ['voter'],
    stopped:
      'The signature covers the vote’s name and spec. The spec has the request’s uid, and the name depends on that uid and the voter.',
    tests: ['unit/access/lifecycle/approvals', 'unit/access/lifecycle/vote-attacks', 'access/vote-attacks'],
  },
  {
    attack: 'vote many times',
    by: ['voter'],
    stopped:
      'The name of a vote depends on the request, voter, `spec.about`, and `spec.decision`; that of an approval also on the template’s version. The API server rejects a second vote of the same name.',
    tests: ['access/vote-attacks', 'unit/admission/votes'],
  },
  {
    attack: 'get a vote signed, and store it later',
    by: ['voter'],
    stopped:
      'A vote must be created within 10 s after its signature, and an approval of access within `approvals.pendingFor` after the request.',
    tests: ['unit/access/lifecycle/vote-attacks'],
  },
  {
    attack: 'approve the requester’s own request, also under a second user name',
    by: ['requester'],
    stopped: 'At admission and when it counts, the server compares user name and uid of voter and requester.',
    remains: 'Without uids, two user names count as two people.',
    tests: ['unit/access/lifecycle/vote-attacks', 'access/approvals'],
  },
  {
    attack: 'count twice under two names',
    by: ['voter'],
    stopped:
      'Votes with the same user name or uid count as one person’s. Each person counts for at most one entry of `approvals.all`.',
    tests: ['unit/access/policy/vote-count', 'unit/access/lifecycle/vote-attacks'],
  },
  {
    attack: 'let a ServiceAccount vote',
    by: ['requester'],
    stopped: 'Votes of ServiceAccounts count only with `approvals.serviceAccounts: true`.',
    remains: 'With it, a requester who can get the token of such an account can vote.',
    tests: ['access/vote-attacks'],
  },
  {
    attack: 'vote, and then lose the verb `approve`',
    by: ['voter'],
    stopped:
      'When it counts, the server asks the API server again whether the voter may approve, with the groups at the time of the vote.',
    tests: ['access/approvals'],
  },
  {
    attack: 'change, delete, or relabel a denial before it counts',
    by: ['requester'],
    stopped:
      'An admission policy lets only the server, the garbage collector, and the namespace controller delete votes. Only the garbage collector may update their owners.',
    tests: ['access/approvals', 'access/vote-attacks'],
  },
  {
    attack: 'hide a denial among forged votes',
    by: ['requester'],
    stopped: 'The server verifies all votes of a request, however many there are.',
    tests: ['unit/access/lifecycle/vote-attacks'],
  },
  {
    attack: 'edit the template between the vote and the grant',
    by: ['editor'],
    stopped:
      'An approval counts only for the version of the template that it names, which the server compares after it has read the votes. A denial counts for every version.',
    tests: ['unit/access/lifecycle/vote-attacks', 'access/approvals'],
  },
  {
    attack: 'replace the approved request by another of the same name',
    by: ['requester'],
    stopped: 'A vote counts only for the request with the uid in `spec.request.uid`.',
    remains: 'If the voter omits it, the webhook takes the request that has the name at that moment.',
    tests: ['unit/admission/votes', 'unit/access/lifecycle/vote-attacks', 'access/vote-attacks'],
  },
  {
    attack: 'write `status.approval` or `status.extensions`',
    by: ['status writer'],
    stopped: 'No grant depends on `status.approval`. An entry of `status.extensions` counts only with a valid MAC.',
    remains:
      'A false `status.approval` allows an early claim, although the grant still waits, or makes the webhook deny reviews. A false `status.extensions` keeps access open until a new leader has its keys.',
    tests: ['unit/access/lifecycle/vote-attacks', 'unit/access/lifecycle/extensions', 'access/vote-attacks'],
  },
  {
    attack: 'claim or extend the access of another user',
    by: ['colleague'],
    stopped:
      'The webhook signs a claim or an extension only for the requester. An admission policy also rejects those of others.',
    tests: ['unit/admission/changes', 'access/extend'],
  },
  {
    attack: 'extend access after its end, beyond `extension.total`, or with a clock that was set back',
    by: ['requester'],
    stopped: 'Ended access stays ended. The total counts from its start, on a monotonic clock, too.',
    tests: ['unit/access/lifecycle/extensions', 'unit/access/policy/extension-choice'],
  },
  {
    attack: 'open emergency access without being in `emergency.groups`, or without a reason',
    by: ['colleague'],
    stopped: 'The webhook and the leader both check.',
    tests: ['unit/access/policy/emergency-policy', 'access/emergency'],
  },
  {
    attack: 'escape the review of an emergency by deleting the request or the template',
    by: ['requester'],
    stopped:
      'Before it opens, the server stores a signed record in its own namespace. An overdue review blocks the user’s next emergency through that template.',
    remains: 'It blocks neither other templates nor other users.',
    tests: ['unit/access/lifecycle/emergencies', 'access/emergency'],
  },
  {
    attack: 'reopen access that a denial closed, by a change of the leader',
    by: ['requester'],
    stopped: 'The leader records the end in the status.',
    remains:
      'If it stops before that, and the voter has lost `approve`, the next leader does not count the denial ([limits](limits.md#votes-and-emergencies)).',
    tests: ['unit/access/lifecycle/vote-attacks'],
  },
  {
    attack: 'block the server with a slow pattern for reasons, such as `(a+)+$`',
    by: ['editor'],
    stopped: 'Patterns match in linear time, and their size is limited.',
    tests: ['unit/access/policy/reason'],
  },
  {
    attack: 'reopen, extend, or revoke a request that has ended and still exists',
    by: ['requester'],
    stopped:
      '`status.ended` is signed and final. The leader opens nothing for such a request, and the webhook denies claims, extensions, and revocations.',
    tests: ['unit/access/lifecycle/history', 'access/history'],
  },
  {
    attack: 'keep ended and denied requests until etcd is full',
    by: ['requester'],
    stopped:
      'Of each kind, at most 50 ended requests of a requester in a namespace stay, and 1,000 in a namespace, apart from those with an owed review.',
    tests: ['unit/access/lifecycle/history'],
  },
  {
    attack: 'put shell code into a group’s name, for an administrator who pastes what `drawbridge approvers` prints',
    by: ['editor'],
    stopped: 'The printed command quotes each name.',
    tests: ['unit/client/approvers'],
  },
];

const gateway: readonly Attack[] = [
  {
    attack: 'call the gateway’s port as if from the API server, or in another user’s name',
    by: ['outsider', 'subject'],
    stopped:
      'The gateway requires the front-proxy certificate. If users may get one from the same authority, and the API server lists no allowed names, it refuses every call.',
    tests: ['gateway/attacks', 'gateway/front-proxy'],
  },
  {
    attack: 'connect to Pods without a Gateway grant',
    by: ['thief'],
    stopped:
      'A webhook admits the gateway only to Pods of open, signed Gateway grants. If it does not answer, the API server denies the connection.',
    remains:
      'While the webhooks are not registered, the token opens every Pod within its permissions, except in `kube-system` and in the server’s namespace.',
    tests: ['access/gateway-sessions', 'unit/access/gateway-target'],
  },
  {
    attack: 'connect after the grant has ended, or to a later Pod of the same name',
    by: ['thief'],
    stopped: 'The webhook checks the end with its own clock, and the uid of the Pod.',
    tests: ['access/gateway-sessions', 'unit/access/gateway-target'],
  },
  {
    attack: 'connect in `kube-system` or in the server’s namespace, or to nodes and Services',
    by: ['thief'],
    stopped: 'An admission policy denies it.',
    tests: ['access/gateway-sessions'],
  },
  {
    attack: 'use the proxy of a Pod, or add an ephemeral container',
    by: ['thief'],
    stopped: 'The webhook and an admission policy admit only exec, attach, and port forwarding.',
    tests: ['access/gateway-sessions', 'unit/admission/pod-guard'],
  },
  {
    attack: 'keep the gateway or its webhook busy with calls that wait for a grant',
    by: ['subject', 'thief'],
    stopped:
      'At the gateway, at most 256 calls wait, for two seconds each; at the webhook, at most 16 connections, for one second each.',
    tests: ['unit/gateway/live-grants', 'unit/access/gateway-target'],
  },
  {
    attack: 'enter Pods of open Gateway grants, or read the logs of any Pod that the Role permits',
    by: ['thief'],
    stopped: 'Nothing',
    remains: 'To revoke the token, delete the Pods of the gateway.',
    tests: [],
  },
  {
    attack: 'open very many sessions, or request large output and not read it',
    by: ['subject'],
    stopped:
      'On each replica, a grant has at most 64 sessions, and all together 1,000. The gateway reads no faster from the Pod than the client does.',
    remains: 'The users of 16 grants can fill a replica.',
    tests: ['gateway/hostile-clients', 'unit/gateway/sessions'],
  },
  {
    attack:
      'write a template that lets whole groups through the gateway, or grants calls that the gateway does not pass',
    by: ['editor'],
    stopped: 'The webhook and the leader deny such templates.',
    tests: ['unit/access/policy/template-policy', 'unit/access/lifecycle/gateway-grants'],
  },
  {
    attack: 'create a Role that lets a user connect through the gateway by another grant',
    by: ['thief of access'],
    stopped: 'In such a Role, an admission policy allows only the grant with the Role’s own name.',
    tests: ['access/policies'],
  },
  {
    attack: 'hide a session: open it without its AccessSession, change that object, or keep it by a finalizer',
    by: ['subject', 'editor'],
    stopped:
      'The gateway creates the object before the first byte, or refuses the session. An admission policy lets only the gateway create and change it, without finalizers.',
    remains: 'Reads of logs have no AccessSession.',
    tests: ['gateway/access-sessions', 'faults/chart/gateway-install'],
  },
  {
    attack: 'create AccessSessions for sessions that do not exist, or accuse a user of an unrecorded one',
    by: ['colleague', 'editor'],
    stopped: 'An admission policy denies it (`StatusReserved`).',
    tests: ['faults/chart/gateway-install'],
  },
  {
    attack: 'end sessions of other users, or read who is connected',
    by: ['colleague', 'editor'],
    stopped:
      'Of the roles for users, only `drawbridge-session-auditor` has permissions for AccessSessions. The chart binds it to no user.',
    tests: ['faults/chart/gateway-install'],
  },
  {
    attack: 'keep a session after its AccessSession was deleted, because the gateway’s watch is broken',
    by: ['subject'],
    stopped:
      'Every 30 s, a replica reads the objects of its sessions that its watch does not show. After 90 s without the API server, it ends its sessions.',
    tests: ['unit/gateway/session-objects', 'unit/gateway/sessions'],
  },
  {
    attack: 'fill etcd with short sessions',
    by: ['subject'],
    stopped:
      'On each replica, a grant can begin 200 sessions at once, then 10 a second (`TooManySessions`). The object of a session goes at its end.',
    tests: ['unit/gateway/sessions', 'unit/gateway/session-objects'],
  },
  {
    attack: 'take or delete the leader’s Lease, or send replicas to another address',
    by: ['thief'],
    stopped:
      'An admission policy limits the gateway to the Leases of its replicas and its certificate. An address must be an IP address with a port.',
    remains:
      'The thief can write any such address, but a replica sends calls only to a server with the serving certificate.',
    tests: ['faults/chart/gateway-install', 'unit/gateway/peers'],
  },
  {
    attack: 'end all sessions, create false AccessSessions, or fill etcd with them',
    by: ['thief'],
    stopped: 'Nothing',
    remains: 'It lasts until the token is revoked.',
    tests: [],
  },
];

const recordings: readonly Attack[] = [
  {
    attack:
      'make the gateway write or delete, or `drawbridge audit verify` read, a file outside of the folder, with names or links',
    by: ['subject', 'editor'],
    stopped: 'Only names of namespaces and UUIDs become paths, and neither program follows links.',
    tests: ['unit/gateway/recording/folder', 'unit/audit/verify/recordings'],
  },
  {
    attack: 'get rid of a recording with output that is too fast for the storage',
    by: ['subject'],
    stopped:
      'While the storage is behind, the gateway stops reading from the Pod. After 5 s without an answer, or if over 1 MiB of the session or 64 MiB of all would wait, recording and session end.',
    remains: 'With `BestEffort`, the session continues unrecorded.',
    tests: ['unit/gateway/recording/recorder', 'gateway/recordings'],
  },
  {
    attack: 'fill the storage with much output',
    by: ['subject'],
    stopped: 'A recording above 1 GiB is lost, and the session ends.',
    remains: 'With `BestEffort`, the session continues unrecorded. Many sessions can fill the storage.',
    tests: [],
  },
  {
    attack: 'hide input from a recording, or pass more than allowed, by frames that two parsers read differently',
    by: ['subject'],
    stopped:
      'An invalid or unmasked frame ends the session (`BadFrame`). For exec and attach, so does a fragmented message, or one on a channel that clients may not use.',
    tests: ['gateway/hostile-clients', 'unit/gateway/stream', 'unit/gateway/frames'],
  },
  {
    attack: 'change, remove, or reorder recordings',
    by: ['storage user'],
    stopped: '`drawbridge audit verify --recordings` compares them with the journal.',
    remains: 'The last bytes of a recording that did not end regularly are unproven.',
    tests: ['unit/audit/verify/recordings', 'faults/gateway/recordings-in-s3'],
  },
  {
    attack: 'store an object where the gateway would store the next part',
    by: ['storage user'],
    stopped: 'The gateway never replaces an object.',
    remains: 'The recording is lost: the session ends, or continues with `BestEffort`.',
    tests: ['faults/gateway/recordings-in-s3'],
  },
  {
    attack: 'delete or read recordings with the gateway’s credentials of the storage',
    by: ['thief'],
    stopped:
      '`drawbridge audit verify --recordings` finds deletions, and [versioning](../tasks/record-sessions-in-a-bucket.md) undoes them.',
    remains: 'Nothing stops reading.',
    tests: ['unit/audit/verify/recordings'],
  },
  {
    attack: 'pose as the S3 server: to redirect the gateway, exhaust its memory, or get its credentials into logs',
    by: ['outsider'],
    stopped:
      'The gateway follows no redirects, limits the size and time of answers, and logs no text of error answers.',
    tests: ['unit/gateway/recording/s3-sink'],
  },
  {
    attack: 'read the recordings of other users',
    by: ['storage user'],
    stopped: 'Nothing but the permissions of the volume or bucket',
    remains: 'Recordings are not encrypted.',
    tests: [],
  },
  {
    attack: 'hide from the reviewer of an emergency that a session was not recorded',
    by: ['subject'],
    stopped:
      'The gateway’s journal has a line `RecordingLost` for each lost recording, [with two exceptions](../tasks/record-sessions.md#when-a-recording-is-lost).',
    remains: 'The request does not show the loss.',
    tests: ['gateway/recordings'],
  },
  {
    attack: 'watch a session or read a recording without the permission',
    by: ['colleague', 'subject'],
    stopped:
      'The API server authorizes `sessions/log` and `recordings/log`. The gateway requires the front-proxy certificate for each call.',
    tests: ['gateway/live', 'gateway/attacks'],
  },
  {
    attack: 'reach another namespace, session, or file with an encoded path or an unusual name',
    by: ['colleague'],
    stopped:
      'The gateway decodes no path, and refuses those that two parsers could read differently. Only names of namespaces and UUIDs lead anywhere.',
    tests: ['gateway/live', 'unit/gateway/call-path'],
  },
  {
    attack: 'watch a session without a line in the journal',
    by: ['auditor'],
    stopped: 'The gateway writes the line before the first byte, or shows nothing.',
    tests: ['unit/gateway/view-handler'],
  },
  {
    attack: 'call a replica as another replica, or answer in its place',
    by: ['outsider', 'thief'],
    stopped:
      'Both sides accept only the serving certificate from their Secret and, after a rotation, the one before it.',
    remains:
      'In certificate mode `own`, the thief can read that Secret, and then watch sessions without a line in the journal.',
    tests: ['unit/gateway/peers', 'gateway/attacks'],
  },
  {
    attack: 'slow a session down, or exhaust memory, with viewers that do not read',
    by: ['auditor'],
    stopped: 'When 1 MiB waits for a viewer, that view ends. A session has at most 8 viewers, and a replica 64.',
    remains: 'One auditor can take all these places.',
    tests: ['gateway/live', 'unit/gateway/live-views'],
  },
  {
    attack: 'act on an auditor’s terminal: type commands, fill the clipboard, hide earlier lines',
    by: ['subject'],
    stopped: '`drawbridge sessions tail` and `play` pass only safe control sequences.',
    remains: 'Other players pass everything.',
    tests: ['unit/client/terminal-filter', 'gateway/live'],
  },
  {
    attack: 'hide output from an auditor behind a terminal sequence without an end',
    by: ['subject'],
    stopped: 'After 4,096 characters of it, the client shows what follows.',
    tests: ['unit/client/terminal-filter'],
  },
  {
    attack: 'print in the session what looks like its end, or like a notice of the gateway',
    by: ['subject'],
    stopped: 'Nothing',
    remains:
      'Output proves no end. After the end, `drawbridge sessions tail` exits with code 0; if it loses the view, it prints an error.',
    tests: [],
  },
  {
    attack: 'continue to watch after the permission was withdrawn',
    by: ['auditor'],
    stopped: 'Nothing',
    remains: 'The view lasts until the session ends, for example because you delete its AccessSession.',
    tests: [],
  },
];

const server: readonly Attack[] = [
  {
    attack: 'take the server down, so that administrators cannot repair the cluster',
    by: ['outsider'],
    stopped:
      'While no replica answers, the API server denies users only entries into Pods whose name ends with `-access`, and never in `kube-system` or in the server’s namespace.',
    tests: ['access/server-down'],
  },
  {
    attack:
      'delay the end of grants with a template that takes long to plan, such as 128 copies of a large Pod template',
    by: ['editor'],
    stopped:
      'Each plan has a budget of work (`PlanTooLarge`). Plans run one at a time, and grants can end between them.',
    tests: ['access/expiry', 'unit/access/builders/plan-budget'],
  },
  {
    attack: 'learn from the dry runs for a template which Pods the API server would accept',
    by: ['editor'],
    stopped:
      'The server sends a dry run only if the template’s author holds all that it hands out, including `create` on Pods.',
    tests: ['unit/access/template/template-judge'],
  },
  {
    attack: 'flood the API server with dry runs',
    by: ['editor'],
    stopped:
      'A version of a template causes at most three, of at most 2 s each. They are repeated at a limited rate, after rejections, missing answers, and changes of the workload or a selector.',
    tests: ['unit/access/template/grant-dry-runs', 'unit/access/template/template-judge'],
  },
  {
    attack: 'send hostile reviews: too large, too deep, with dangerous keys, or too slow',
    by: ['outsider'],
    stopped: 'The size, the depth, and the time of a review are [limited](../reference/webhook-port.md).',
    tests: ['fuzz/admission', 'fuzz/reference', 'faults/admission/slow-clients'],
  },
  {
    attack: 'block the API server or the kubelet by thousands of connections, unfinished bodies, or expensive reviews',
    by: ['outsider'],
    stopped:
      'Source addresses share budgets of connections, bytes, and processor time. When one is used up, work of the address that uses most is dropped ([0028](../adr/0028-port-budgets.md)).',
    tests: ['unit/admission/server', 'unit/admission/fair-queue', 'unit/observe/http', 'faults/admission/under-attack'],
  },
  {
    attack: 'do the same from the API server’s own address',
    by: ['outsider'],
    stopped: 'Of one address, small bodies and reviews come before large ones.',
    remains:
      'Idle connections [can keep the API server out](../reference/webhook-port.md#clients-at-the-api-servers-address).',
    tests: ['unit/kit/fair-share', 'unit/admission/server', 'faults/admission/under-attack'],
  },
  {
    attack: 'fill logs and metrics with endless names and groups',
    by: ['outsider'],
    stopped:
      'Names, uids, groups, and extra fields of a review are limited, as are series of a metric (1,000) and logged values (4,096 characters).',
    tests: [
      'unit/admission/review-limits',
      'unit/observe/metrics',
      'unit/observe/log',
      'faults/access/own-certificates',
    ],
  },
  {
    attack: 'reopen closed access with a late event or a stale copy',
    by: ['outsider'],
    stopped:
      'The end of a grant is final. Each status write carries the resourceVersion that its decision was based on.',
    tests: ['faults/access/random-histories', 'unit/access/lifecycle/status-writer'],
  },
  {
    attack: 'make two replicas act as the leader, or let a frozen one write after it continues',
    by: ['outsider'],
    stopped: 'Before each write of the leader, the replica checks that it still holds the Lease.',
    tests: ['faults/access/leader-election', 'unit/kube/lease-gate'],
  },
  {
    attack: 'make the server act on stale copies of objects',
    by: ['outsider'],
    stopped:
      'Before the janitor deletes an object, and before votes open access, the leader reads the requests or votes from the API server.',
    tests: ['unit/access/janitor', 'unit/access/lifecycle/vote-attacks'],
  },
  {
    attack:
      'call the webhooks in place of the API server: to get another user signed as requester or author and store that, write audit lines, or check permissions',
    by: ['outsider', 'editor'],
    stopped:
      'A policy admits a request or template only if its attestation names the user who stores it. In certificate mode `own`, webhook paths have a [random segment](../tasks/certificates.md#the-path-segment). With `--client-ca-file`, callers need a client certificate.',
    remains:
      'Otherwise, a client that reaches the port can call the webhooks, in mode `own` only with the segment ([limits](limits.md#forgery)).',
    tests: ['access/without-webhooks', 'faults/access/own-certificates', 'unit/certificates/webhook-paths'],
  },
  {
    attack: 'create a key Secret with known keys before the first start',
    by: ['outsider'],
    stopped:
      'The server uses an existing Secret only with proof that this installation used it before, such as its list of public keys.',
    remains: 'With `signingKeys.adopt`, it uses any.',
    tests: ['chart/access-install', 'unit/access/signing/key-secret'],
  },
  {
    attack: 'break into one feature, and use the permissions, keys, or network peers of another',
    by: ['outsider'],
    stopped:
      'With the chart, each feature has its own ServiceAccount and NetworkPolicy, and may read only its own keys.',
    tests: ['chart/inventory-manifests'],
  },
  {
    attack: 'intercept calls between the API server and the webhooks',
    by: ['outsider'],
    stopped:
      'In certificate mode `own`, the server creates a CA, signs one certificate, and discards the CA’s key. It restores a `caBundle` that another client changes.',
    remains: 'In the other modes, an attacker with the key of your CA can.',
    tests: ['faults/access/own-certificates'],
  },
  {
    attack: 'change something, or get a signature, with dry runs',
    by: ['colleague'],
    stopped: 'For a dry run, the webhooks sign nothing, and mark the audit line with `dryRun: true`.',
    tests: ['access/dry-run', 'unit/admission/requester-attestation'],
  },
  {
    attack: 'find secrets in the journal, or names of users in metrics',
    by: ['outsider'],
    stopped:
      'Lines have only [the listed fields](../reference/audit-journal.md), and no commands of sessions. Metrics contain no names of users.',
    tests: ['unit/audit/record', 'access/pod-entry', 'access/metrics'],
  },
  {
    attack: 'change the audit journal afterwards',
    by: ['outsider'],
    stopped:
      'Each line has the hash of the line before it. About every 5 s, each process stores a signed head in the cluster. `drawbridge audit verify` finds changes up to the last head.',
    remains: 'The lines after it are unproven ([limits](limits.md#evidence)).',
    tests: ['access/audit-journal', 'unit/audit/verify/property'],
  },
  {
    attack: 'fill the disk, so that access opens without a line in the journal',
    by: ['outsider'],
    stopped:
      'Access opens only after its line is written, and closes without waiting. A later line has the number of lost lines.',
    remains: 'Other calls, such as exec by a user with a Direct grant, pass without a line.',
    tests: ['access/audit-journal'],
  },
];

const inventory: readonly Attack[] = [
  {
    attack: 'read or write another entry, list entries, read other Secrets, change the spec, delete the entry',
    by: ['component', 'token thief'],
    stopped: '[Roles](permissions-of-a-run.md) name their objects, and allow neither `list` nor `watch`.',
    tests: ['inventory/run-token'],
  },
  {
    attack: 'write a status with the token of a run that has ended, was replaced, or never existed',
    by: ['component', 'token thief'],
    stopped: 'A webhook checks the token against the record of the run.',
    tests: ['inventory/run-token', 'unit/inventory/policy/run-authorization'],
  },
  {
    attack: 'write another component’s outputs, the conditions, or other parts of the status, even in an allowed patch',
    by: ['component'],
    stopped: 'The same webhook denies the whole patch, and the journal names the run.',
    tests: ['inventory/run-token', 'unit/inventory/policy/component-write'],
  },
  {
    attack: 'publish a reference to another Secret, so that readers of the kubeconfig follow it',
    by: ['component'],
    stopped: 'The webhook admits only a `secretRef` to the entry’s Secret `kc-<uid>`, without a namespace.',
    tests: ['inventory/run-token'],
  },
  {
    attack: 'use a Secret that the attacker may not read, by naming it as the kubeconfig of an entry',
    by: ['entry writer'],
    stopped:
      'A webhook records who named it in `spec.kubeconfigSetBy`. Before each run that needs the Secret, the server checks that this user may read it.',
    tests: ['inventory/kubeconfig-secret'],
  },
  {
    attack:
      'register a component that owns a path of another one for entries of the same `spec.mode`, or that triggers itself',
    by: ['registration writer'],
    stopped: 'The webhook for registrations denies it.',
    remains: 'It admits components that trigger each other; the condition `Cyclic` shows it.',
    tests: ['inventory/webhooks-away', 'inventory/kubectl'],
  },
  {
    attack: 'delete a registration, so that no component tears down what it created',
    by: ['registration writer', 'outsider'],
    stopped: 'The webhook denies the deletion while records of the component exist.',
    tests: ['inventory/webhooks-away'],
  },
  {
    attack:
      '[abandon a component](../tasks/run-the-inventory.md#abandon-a-component) in another user’s name, or hide who did it',
    by: ['entry writer'],
    stopped: 'A webhook records the user who set the annotation, over any other name that was sent.',
    tests: ['inventory/kubectl', 'unit/admission/entry-webhooks'],
  },
  {
    attack: 'create a `ReconcileRun` with the name of a future record',
    by: ['outsider'],
    stopped: 'A record counts only with the uid of the entry.',
    remains:
      'Meanwhile, the component does not run; and with the right uid, the forgery counts. Grant no user write access to `ReconcileRun`s.',
    tests: ['unit/inventory/stores/kube-run-store'],
  },
  {
    attack: 'enlarge an entry until no component can work with it',
    by: ['entry writer', 'component'],
    stopped: 'A webhook denies writes that make an entry grow above 64 KiB.',
    remains: 'If it does not answer, the write is admitted. One component’s outputs can use up the 64 KiB.',
    tests: ['inventory/webhooks-away'],
  },
  {
    attack: 'forge a report',
    by: ['token thief', 'outsider'],
    stopped: 'By a TokenReview, the token’s ServiceAccount and ID must be those of the run.',
    tests: ['inventory/run-token'],
  },
  {
    attack: 'forge a call to a component',
    by: ['token thief', 'outsider'],
    stopped:
      'Only the component, which must check the token’s ServiceAccount (`drawbridge-inventory`) and audience (`drawbridge/<component>`).',
    tests: [],
  },
  {
    attack:
      'create a record and a ServiceAccount named like those of an entry in another namespace, and report for its run',
    by: ['outsider'],
    stopped: 'Both count only in the namespace of their entry.',
    tests: ['inventory/run-token', 'unit/inventory/stores/kube-run-store'],
  },
  {
    attack: 'trigger the components of another entry with an object that has that entry’s label',
    by: ['outsider'],
    stopped: 'An object in a namespace counts only in that of the entry, or in one that the registration names.',
    remains: 'An object without a namespace can trigger those of any entry.',
    tests: ['unit/inventory/remote/hub'],
  },
  {
    attack: 'fill the memory of the server from a managed cluster',
    by: ['entry writer'],
    stopped: 'Each watch keeps at most 5,000 objects.',
    remains: 'A page of a list, up to 256 MiB, is read before this limit applies.',
    tests: ['unit/inventory/remote/hub', 'unit/kube/list-watch'],
  },
  {
    attack:
      'block all components with an entry on which the server cannot [prove its webhook](permissions-of-a-run.md#how-the-server-limits-a-run)',
    by: ['entry writer', 'outsider'],
    stopped: 'If the proof on one entry fails, the server tries the next.',
    tests: ['unit/inventory/accounts/tokens'],
  },
  {
    attack: 'create a Role, RoleBinding, or Secret before the server does',
    by: ['entry writer'],
    stopped:
      'If the object does not belong to the entry, or a wrong field cannot be changed (`roleRef`, `immutable`), the server leaves it and starts no run.',
    tests: ['unit/inventory/accounts/entry-accounts'],
  },
  {
    attack: 'add a subject to a RoleBinding of the server',
    by: ['entry writer'],
    stopped:
      'The attacker must hold the Role’s permissions, or `bind` on it. When the server writes the RoleBinding, it removes foreign subjects.',
    remains: 'It writes only to grant or withdraw permissions. Until then, the subject keeps access.',
    tests: ['unit/inventory/accounts/entry-accounts'],
  },
  {
    attack: 'read the kubeconfig after an administrator has removed `kubeconfig` from the registration',
    by: ['component'],
    stopped: 'Before its next run, the server removes the component’s ServiceAccount from the RoleBinding.',
    remains: 'Until then, a token that has not expired can read it.',
    tests: ['unit/inventory/accounts/entry-accounts'],
  },
  {
    attack: 'take the webhooks down, to write without checks or to lock users out',
    by: ['outsider'],
    stopped:
      'While they do not answer, the API server denies writes of registrations, status writes by components, and changes of `spec.kubeconfigSecretRef` and abandon annotations.',
    remains: 'Other writes by users succeed without checks.',
    tests: ['inventory/webhooks-away'],
  },
  {
    attack: 'use the permissions of the server after a break-in',
    by: ['outsider'],
    stopped:
      'It holds no wildcard, `escalate`, or `bind`. It may write entries and records only in `inventory.namespaces`, and in its own namespace use only some Secrets and ServiceAccounts, by name.',
    remains: 'In `inventory.namespaces`, [it may use all of both](limits.md#inventory).',
    tests: ['chart/inventory-manifests'],
  },
];

const binding: readonly Attack[] = [
  {
    attack:
      'send a kubeconfig that runs a program in the server’s process, reads its files, uses a proxy, trusts any authority, or impersonates a user',
    by: ['provider'],
    stopped:
      'Only an https server, an inline authority, an inline token or client certificate, a TLS name, and a namespace are accepted. No Kubernetes library reads the text.',
    tests: ['unit/kube/kubeconfig'],
  },
  {
    attack: 'name another server in a later kubeconfig, to reach into your network or receive your token',
    by: ['provider'],
    stopped:
      'A later kubeconfig is copied into your Secret only with the same scheme, host, port, and path, and after a test; with the annotation `binding.drawbridge.dev/keep-kubeconfig: "true"`, never.',
    tests: ['unit/binding/cluster-binding/controller', 'binding/rotation'],
  },
  {
    attack: 'receive your objects at another cluster under the same name and address',
    by: ['provider', 'outsider'],
    stopped:
      'The server verifies the TLS certificate. With a new kubeconfig, the uid of your namespace at the provider must stay the same.',
    remains: 'The uid is not compared after a restart, or if the server may not read that Namespace.',
    tests: ['unit/binding/sessions/session-reconciler', 'binding/bad-input'],
  },
  {
    attack: 'replace one of your CustomResourceDefinitions, or take a name before you install it',
    by: ['provider'],
    stopped:
      'The server never changes a definition that the binding does not own, and creates only the kinds in `binding.bindable` (`--bindable`).',
    tests: [
      'unit/binding/service-binding/bindings',
      'unit/binding/service-binding/unbinding',
      'chart/binding-manifests',
    ],
  },
  {
    attack: 'define a conversion webhook, so that your API server sends every object to the provider',
    by: ['provider'],
    stopped: 'Conversion webhooks are not copied. If versions need one, the definition serves only one version.',
    tests: ['unit/binding/service-binding/bound-crd'],
  },
  {
    attack: 'create namespaces of its choice in your cluster',
    by: ['provider'],
    stopped: 'With `binding.bindableNamespaces`, only those are created for providers.',
    remains: 'By default, any that does not exist is created.',
    tests: ['faults/chart/binding-install'],
  },
  {
    attack: 'overwrite or delete a Secret, ConfigMap, or ServiceAccount of yours by one of the same name',
    by: ['provider'],
    stopped:
      'The server overwrites only objects with the label `kube-bind.io/owner: provider`, and deletes only copies of this provider’s objects. It creates objects only in [some namespaces](../concepts/claims.md#what-a-provider-can-write).',
    tests: ['unit/binding/claims/plan-properties', 'unit/binding/claims/open-claims-down'],
  },
  {
    attack: 'claim credentials: kubeconfigs of other providers, tokens of ServiceAccounts, or the server’s keys',
    by: ['provider'],
    stopped: '[Some objects are never shared](../concepts/claims.md#what-is-never-shared).',
    remains: 'Any other credential that a claim selects and `binding.claimable` allows is shared.',
    tests: ['unit/binding/claims/exemption', 'binding/bad-input'],
  },
  {
    attack: 'claim other kinds, such as Pods',
    by: ['provider'],
    stopped:
      'Only ConfigMaps, Secrets, and ServiceAccounts can be claimed; with the chart, only those in `binding.claimable`, by default none.',
    tests: ['unit/binding/claims/open-claims', 'chart/binding-manifests'],
  },
  {
    attack: 'remove all exports, and with them your bindings, kinds, and objects',
    by: ['provider', 'outsider'],
    stopped:
      'An export that is missing from a list deletes nothing ([0019](../adr/0019-bundles-delete.md)). Bindings without a bundle stay.',
    remains:
      'If the server observes the deletion of an export, it deletes the binding of its bundle, and with it your objects.',
    tests: ['unit/binding/bundles/controller'],
  },
  {
    attack: 'let your server write to the copies of other consumers',
    by: ['other consumer'],
    stopped:
      'The server changes a copy only if it names your namespace at the provider, and deletes it only if it also names your object.',
    tests: ['binding/scenarios', 'unit/binding/claims/plan', 'unit/binding/sync/left-copies'],
  },
  {
    attack: 'write to your copies',
    by: ['other consumer'],
    stopped: 'Nothing but the provider’s permissions',
    tests: [],
  },
  {
    attack: 'delete newer copies at the provider, after a restore of your cluster from an old backup',
    by: ['outsider'],
    stopped:
      'If 20 or more objects of a kind are missing within a minute, and their deletion was not observed, [their copies stay](../concepts/binding.md#what-is-never-deleted-by-mistake).',
    remains: 'If fewer are missing, their copies may be deleted.',
    tests: ['unit/binding/claims/open-claims-faults', 'binding/lost-objects'],
  },
  {
    attack: 'send no answers, slow answers, or denials',
    by: ['provider', 'outsider'],
    stopped:
      'The server has separate connections for each provider, and retries with a backoff. Such answers delete nothing.',
    tests: ['faults/binding/provider-away'],
  },
  {
    attack: 'send invalid objects: missing fields, wrong types',
    by: ['provider'],
    stopped: 'Schemas check these objects, and an invalid spec is not used.',
    tests: ['unit/api/binding/kinds', 'unit/binding/stores/stores'],
  },
  {
    attack: 'fill your cluster with Events, by many failing objects or flipping permissions',
    by: ['provider', 'other consumer'],
    stopped:
      'For each `action`, a replica writes 300 Events at once, then 5 a second; for one object and action, 25 different ones at once, then one every five minutes.',
    tests: ['unit/kube/event-recorder'],
  },
  {
    attack: 'use the server’s permissions in your cluster after a break-in',
    by: ['provider'],
    stopped:
      'It holds no wildcard, `escalate`, or `bind`. It may change and delete only definitions that RBAC lists by name, and only read and patch bound objects.',
    remains:
      'It may create definitions and namespaces of any name, read and write Secrets in `kube-bind` and `binding.secretNamespaces`, and write bindings and all objects in `binding.claimable`.',
    tests: ['faults/chart/binding-install'],
  },
];

/** A table for each; `intro` is above it. */
export const attackSections: Readonly<Record<string, { readonly intro?: string; readonly rows: readonly Attack[] }>> = {
  Access: { rows: access },
  'Approvals, extensions, and emergencies': {
    intro:
      '[Random histories](../../test/unit/access/lifecycle/voted-histories.test.ts) combine all of this with failures of the leader.',
    rows: approvals,
  },
  'The gateway': { rows: gateway },
  'Recordings and views': {
    intro:
      '`BestEffort` is a value of [`session.record`](../tasks/record-sessions.md) in the template; for emergency access, `Required` works like it. A view shows a session while it is open, or a recording of it.',
    rows: recordings,
  },
  'The server, its keys, and its journal': { rows: server },
  Inventory: {
    intro:
      'A namespace of entries is a trust boundary: a user who may create Pods in it can run them under any ServiceAccount there.',
    rows: inventory,
  },
  Binding: {
    intro:
      'Your cluster is the consumer. A copy is the object that drawbridge creates in one cluster for an object of the other. Trusted, too, are users who may write APIServiceBindings or their bundles, or Secrets in `kube-bind` or `binding.secretNamespaces`.',
    rows: binding,
  },
};
