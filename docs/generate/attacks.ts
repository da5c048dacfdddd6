/**
 * The attacks that we know of, for docs/security/attacks.md. Texts are Markdown; links are relative to that page.
 * An attack stands once, with the feature that stops it.
 */
export interface Attack {
  readonly attack: string;
  /** Empty for anyone with the permissions that the attack names, and for accidents. */
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
    'has the token of the feature’s ServiceAccount. The gateway’s may enter every Pod where access opens (chart value `namespaces`), and read its logs',
  'thief of access': 'is the thief with the token of `drawbridge`',
  'notification writer':
    'may write NotificationProviders, NotificationSubscriptions, and Secrets in one namespace, as users with `admin` may',
  'storage user': 'may read or write the volume or bucket of recordings',
  component: 'has what a component gets; it is faulty, or an attacker controls it',
  'token thief': 'has the token of a run, or of a call to a component',
  'entry writer': 'may write entries in one namespace',
  'registration writer': 'may write registrations. Trusted, because these say where tokens go',
  provider: 'administers a bound cluster, or has broken into it',
  'other consumer': 'is another consumer of the same provider',
} as const;

const access: readonly Attack[] = [
  {
    attack: 'use the access that another user requested',
    by: ['colleague'],
    stopped: 'The RoleBinding names only the requester.',
    remains: 'With `grantTo: AllowedGroups`, all their members may use it.',
    tests: ['access/subjects', 'access/expiry'],
  },
  {
    attack: 'request access or an emergency without being in an allowed group, or an emergency without a reason',
    by: ['colleague'],
    stopped:
      'The webhook and the leader check. Users in no allowed group get only access that they already hold, and no emergency.',
    remains: 'A user who leaves the group later keeps the access.',
    tests: ['access/allowed-groups', 'access/dead-ends', 'unit/access/policy/emergency-policy', 'access/emergency'],
  },
  {
    attack: 'request access in another name or none, or change the requester later',
    by: ['colleague'],
    stopped:
      'The webhook writes the caller into the request, and denies calls without a name. An admission policy allows no other requester.',
    tests: ['access/requester', 'unit/access/policy/request-policy', 'access/policies'],
  },
  {
    attack: 'request access without the webhooks',
    by: [],
    stopped:
      'The admission policy denies a request without a requester, or with another one. The leader checks the template’s rules again.',
    remains: 'The journal has only the line of the grant.',
    tests: ['access/without-webhooks', 'access/policies'],
  },
  {
    attack: 'remove or narrow the admission policies, forge requests, votes, templates, or statuses, and restore them',
    by: [],
    stopped:
      'The leader notices it within seconds. It opens nothing until the policies have been in force for 40 s, and then nothing of before.',
    remains: 'Meanwhile, for example, [a status writer](limits.md#forgery) can lengthen open grants.',
    tests: ['faults/access/policy-gap', 'unit/access/policies/policy-guard', 'unit/access/lifecycle/policy-gaps'],
  },
  {
    attack: 'change the template, duration, or Pod of a granted request',
    by: ['colleague'],
    stopped: 'CEL rules of the CRD, and the webhook, even for unset fields',
    tests: ['access/immutable-spec', 'access/revocation', 'kube/crds', 'fuzz/admission'],
  },
  {
    attack: 'widen a grant by changing its template',
    by: ['editor'],
    stopped: 'The grant is stored first. Later edits can only end it sooner.',
    remains: 'An edit of `extension` applies to open grants.',
    tests: ['access/template-edits', 'access/rules'],
  },
  {
    attack: 'hand out permissions that the author lacks, or to `system:authenticated`',
    by: ['editor'],
    stopped:
      'The webhook writes the author into the template, and an admission policy allows only the caller. The leader grants only what the author holds, and nothing to `system:…` groups.',
    remains: 'Weaker for [some authors](limits.md#templates-and-requests)',
    tests: ['access/template-authors'],
  },
  {
    attack: 'use drawbridge’s permissions',
    by: ['thief'],
    stopped: 'RBAC and admission policies limit the token to [these](../reference/token-permissions.md).',
    remains:
      'A thief can let users enter Pods, create Pods, end any access, read the audit keys, and in certificate mode `own` break the webhooks.',
    tests: ['chart/tokens', 'access/policies'],
  },
  {
    attack:
      'define a privileged access pod, one with another ServiceAccount, or a probe or hook by which the node calls other hosts',
    by: ['editor'],
    stopped:
      'Denied, unless the template sets `allowPrivilegedPod` and [an administrator allows it](../concepts/template-authors.md#privileged-pods): to its author and, beyond baseline, in the Namespace.',
    tests: ['access/pod-security', 'access/policies', 'fuzz/pod-reach', 'unit/access/builders/pod-security-baseline'],
  },
  {
    attack: 'send a Service’s traffic to the access pod by mistake, or Secrets past the workload’s NetworkPolicy',
    by: ['editor', 'colleague'],
    stopped:
      'The access pod keeps only labels by which NetworkPolicies select the workload. A request is denied if another selector would select it, unless `allowedSelectors` lists that, or if its egress would be less isolated (`ConfinementLost`).',
    remains:
      'Not checked: objects created later, policies of network plug-ins, and egress with [`accessPods: oz`](../concepts/access-pods.md#compatibility-with-oz)',
    tests: ['access/service-selectors', 'unit/access/builders/pod-selection'],
  },
  {
    attack:
      'use the workload’s cloud identity, add one or a sidecar by its annotations, or copy a ServiceAccount token',
    by: ['colleague', 'editor'],
    stopped:
      'The access pod runs under `default` without a token, unless the template sets `keepServiceAccount`, names another with `allowPrivilegedPod`, or sets `automountServiceAccountToken`. Annotations of well-known programs that add identities, secrets, or sidecars are not copied.',
    remains:
      'With `accessPods: oz`, or a workload under `default`, both share one identity. Other annotations and projected token volumes, for the access pod’s ServiceAccount, are copied.',
    tests: [
      'access/service-selectors',
      'access/oz-manifests',
      'unit/access/builders/pod-access-builder',
      'unit/access/builders/copied-annotations',
    ],
  },
  {
    attack:
      'crash, block, or delay drawbridge with a template: invalid, slow to plan, or with a pattern for reasons such as `(a+)+$`',
    by: ['editor'],
    stopped:
      'Planning returns a result or an error for every input, within a budget of work (`PlanTooLarge`), one plan at a time; grants can end between them. Patterns match in linear time, and their size is limited.',
    tests: ['fuzz/builders', 'access/expiry', 'unit/access/builders/plan-budget', 'unit/access/policy/reason'],
  },
  {
    attack: 'keep access by another finalizer or owner of the request',
    by: ['colleague'],
    stopped: 'The webhook removes both from new requests. Access ends even if a finalizer keeps the request.',
    tests: ['access/foreign-finalizers', 'access/revocation'],
  },
  {
    attack: 'delete the request but keep its grant, uninstall the chart, or delete the CRDs',
    by: ['colleague'],
    stopped:
      'A finalizer keeps the request until its grant’s objects are gone; without it, the janitor deletes them. Before Helm uninstalls, a Job revokes every grant.',
    remains: 'The Job can be disabled (`uninstall.revoke=false`, `--no-hooks`).',
    tests: ['access/expiry', 'access/janitor', 'chart/access-install', 'faults/access/crds-deleted'],
  },
  {
    attack: 'change the objects of a grant, or put a finalizer on them',
    by: ['editor'],
    stopped:
      'Admission policies protect finalizers, marks, rules, subjects, images, and resources. Ephemeral containers must satisfy baseline, unless the Namespace allows more. drawbridge removes the subjects of a RoleBinding that a finalizer keeps.',
    remains:
      'A user with permission can delete these objects. Without the policies, access can [stay open](limits.md#forgery).',
    tests: ['access/policies', 'unit/access/lifecycle/request-lifecycle'],
  },
  {
    attack: 'delete the template, so that its grants never end',
    by: ['editor'],
    stopped: 'They end at once.',
    remains: 'So it can end the access of others.',
    tests: ['access/expiry'],
  },
  {
    attack: 'delay expiry with many requests',
    by: ['colleague'],
    stopped: 'Ends of access come first in the queue, and have reserved workers.',
    tests: ['faults/access/busy-queue', 'faults/access/burst', 'faults/admission/under-attack'],
  },
  {
    attack: 'rely on clocks that differ, or that were set back',
    by: [],
    stopped: 'The leader ends the grant by its wall or its monotonic clock, whichever is first.',
    remains: 'Set back before the leader started, its clock adds at most the granted time.',
    tests: ['access/clock'],
  },
  {
    attack: 'reach several Pods of a workload in turn, or others with the same labels',
    by: ['colleague', 'editor'],
    stopped:
      'drawbridge chooses one Pod that the workload controls. The grant ends when the Pod with that uid is deleted.',
    remains: 'Until drawbridge sees that, it covers a new Pod of the same name.',
    tests: ['access/chosen-pod', 'access/targets', 'access/expiry'],
  },
  {
    attack:
      'forge a status: get a grant, enter another Pod, make a Gateway grant direct, change its idle limit or recording',
    by: ['status writer'],
    stopped: 'An admission policy lets only drawbridge write it. The CRD keeps a grant unchanged.',
    remains: 'While the policy is not in force, [more is possible](limits.md#forgery).',
    tests: ['access/forged-status', 'access/policies'],
  },
  {
    attack: 'create the Pod, Role, or RoleBinding before drawbridge does',
    by: ['editor'],
    stopped:
      'An admission policy reserves the label `access.drawbridge.dev/request`. drawbridge overwrites nothing, and uses an object only with the right marks and owner, while the policy is in force.',
    tests: ['access/premade-objects', 'access/policies', 'unit/rbac/applier'],
  },
  {
    attack:
      'hide code in what users paste into a shell: the access command with its labels and annotations, or groups that `drawbridge approvers` prints',
    by: ['editor', 'colleague'],
    stopped:
      'In every shell, the command is one call of `kubectl` or `oc` to the granted Pod, with listed verbs and options, and no invisible characters. Values and groups are quoted.',
    tests: ['unit/access/policy/access-command', 'client/shell-words', 'access/validation', 'unit/client/approvers'],
  },
  {
    attack: 'stay in an open stream after the end of the grant',
    by: ['colleague', 'subject'],
    stopped:
      'The node kills all in a deleted access pod, [usually within seconds](limits.md#open-sessions). The gateway ends its streams.',
    remains: 'A direct stream into a workload’s Pod stays open.',
    tests: ['access/expiry', 'access/revocation', 'e2e/access', 'e2e/gateway'],
  },
  {
    attack: 'enter by attach, port forwarding, the proxy, ephemeral containers, or exec with GET',
    by: ['editor', 'colleague'],
    stopped:
      'The API server calls the webhooks for all. A grant’s Role allows exec at most on the granted Pod, with `get` and `create`.',
    remains: 'While no replica answers, entries into Pods that are no access pods leave no record.',
    tests: ['access/pod-entry', 'access/exec-guard'],
  },
  {
    attack: 'open more and more grants',
    by: ['colleague'],
    stopped: 'The leader limits the open grants of a user, namespace, and template.',
    remains: 'These limits are off until you set them.',
    tests: ['access/limits'],
  },
  {
    attack: 'write a rule for more than the granted Pod',
    by: ['editor'],
    stopped: 'drawbridge sets the name of that Pod in each rule.',
    tests: ['access/rules', 'unit/access/lifecycle/granted-rules'],
  },
  {
    attack: 'enter an access pod directly, with own permissions',
    by: ['editor', 'subject'],
    stopped: 'The guard admits only users of a direct grant, and the break-glass group. Administrators are not exempt.',
    remains: 'Pods of a workload have no guard.',
    tests: ['access/exec-guard', 'access/gateway-sessions'],
  },
  {
    attack: 'break glass without being noticed',
    by: ['editor'],
    stopped:
      'Only members of `--break-glass-group` enter without a grant. Each entry needs a line in the journal, and causes a Warning Event.',
    tests: ['access/exec-guard', 'unit/admission/pod-guard'],
  },
];

const approvals: readonly Attack[] = [
  {
    attack:
      'forge a vote, a claim, or an extension, or claim or extend the access of others, also while no webhook is registered',
    by: ['voter', 'requester', 'colleague'],
    stopped:
      'An admission policy allows only the caller as the voter, and only the requester to claim and extend. A vote counts only under the name that the webhook gives it.',
    tests: ['access/vote-attacks', 'access/approvals', 'access/extend', 'unit/admission/changes'],
  },
  {
    attack: 'copy a vote, use it for another request also of the same name, or vote many times',
    by: ['voter', 'requester'],
    stopped:
      'Its name, which exists once, depends on the request’s uid, voter, `spec.about`, `spec.decision`, and for an approval the template’s version. A vote counts only for that uid and, for an approval of access, within `approvals.pendingFor`.',
    remains: 'If the voter omits the uid, the webhook takes that of the present request.',
    tests: [
      'unit/access/lifecycle/approvals',
      'unit/access/lifecycle/vote-attacks',
      'access/vote-attacks',
      'unit/admission/votes',
    ],
  },
  {
    attack: 'approve the own request, or count twice under two names',
    by: ['requester', 'voter'],
    stopped:
      'At admission and at the count, the same user name or uid is one person, who counts for one entry of `approvals.all`.',
    remains: 'Without uids, two names count as two people.',
    tests: ['unit/access/lifecycle/vote-attacks', 'access/approvals', 'unit/access/policy/vote-count'],
  },
  {
    attack: 'let a ServiceAccount vote',
    by: ['requester'],
    stopped: 'It counts only with `approvals.serviceAccounts: true`.',
    remains: 'Then a requester who gets its token can vote.',
    tests: ['access/vote-attacks'],
  },
  {
    attack: 'vote, and then lose the verb `approve`',
    by: ['voter'],
    stopped: 'At the count, drawbridge checks the verb again, with the groups at the time of the vote.',
    tests: ['access/approvals'],
  },
  {
    attack: 'change, delete, or relabel a denial, or hide it among forged votes',
    by: ['requester'],
    stopped:
      'By an admission policy, only drawbridge, the garbage collector, and the namespace controller delete votes; only the collector updates their owners. drawbridge verifies all votes.',
    tests: ['access/approvals', 'access/vote-attacks', 'unit/access/lifecycle/vote-attacks'],
  },
  {
    attack: 'edit the template between the vote and the grant',
    by: ['editor'],
    stopped: 'An approval counts only for the version that it names. A denial counts for all.',
    tests: ['unit/access/lifecycle/vote-attacks', 'access/approvals'],
  },
  {
    attack: 'write `status.approval` or `status.extensions`',
    by: ['status writer'],
    stopped: 'An admission policy lets only drawbridge write them. No grant depends on the first.',
    remains:
      'While the policy is not in force, a false first allows an early claim, although the grant still waits, or makes the webhook deny reviews. A false second keeps access open.',
    tests: ['unit/access/lifecycle/vote-attacks', 'access/vote-attacks', 'access/policies'],
  },
  {
    attack:
      'reopen, extend, or revoke ended access, also by a change of the leader or a clock that was set back, or extend it beyond `extension.total`',
    by: ['requester'],
    stopped:
      '`status.ended` is final; the webhook denies such changes. The total counts from the start, also on a monotonic clock.',
    remains: 'A denial [can be lost](limits.md#votes-and-emergencies) if its voter loses `approve`.',
    tests: [
      'unit/access/lifecycle/extensions',
      'unit/access/policy/extension-choice',
      'unit/access/lifecycle/vote-attacks',
      'unit/access/lifecycle/history',
      'access/history',
    ],
  },
  {
    attack: 'escape the review of an emergency by deleting the request or the template',
    by: ['requester'],
    stopped:
      'First, drawbridge stores a record in its namespace, which no other client may change. An overdue review blocks the user’s next emergency through that template.',
    remains: 'Other templates and users are not blocked.',
    tests: ['unit/access/lifecycle/emergencies', 'access/emergency'],
  },
  {
    attack: 'fill etcd with ended requests',
    by: ['requester'],
    stopped:
      'Of each kind, at most 50 of a requester in a namespace stay, and 1,000 in a namespace, apart from those with an owed review.',
    tests: ['unit/access/lifecycle/history'],
  },
];

const gateway: readonly Attack[] = [
  {
    attack: 'call the gateway’s port as if from the API server, or in another name',
    by: ['subject'],
    stopped:
      'It requires the front-proxy certificate. If users may get one of the same authority, and the API server lists no allowed names, it refuses every call.',
    tests: ['gateway/attacks', 'gateway/front-proxy'],
  },
  {
    attack: 'connect without an open Gateway grant, or to a later Pod of the same name',
    by: ['thief'],
    stopped:
      'A webhook admits the gateway only to Pods of open Gateway grants, by its own clock and the Pod’s uid. If it does not answer, the API server denies.',
    remains:
      'While no webhook is registered, the token opens every Pod within its permissions, except in `kube-system` and the namespace of drawbridge.',
    tests: ['access/gateway-sessions', 'unit/access/gateway-target'],
  },
  {
    attack:
      'connect in `kube-system` or the namespace of drawbridge, to nodes, Services, or the proxy of a Pod, or by an ephemeral container',
    by: ['thief'],
    stopped: 'An admission policy; for the last two, also the webhook',
    tests: ['access/gateway-sessions', 'unit/admission/pod-guard'],
  },
  {
    attack: 'block the gateway or its webhook with calls that wait for a grant',
    by: ['subject', 'thief'],
    stopped: 'At the gateway, at most 256 calls wait, for 2 s; at the webhook, 16, for 1 s.',
    tests: ['unit/gateway/live-grants', 'unit/access/gateway-target'],
  },
  {
    attack:
      'enter Pods of open Gateway grants, read logs that the Role permits, end all sessions, or fill etcd with false AccessSessions',
    by: ['thief'],
    stopped: 'Nothing',
    remains: 'To revoke the token, delete the Pods of the gateway.',
    tests: [],
  },
  {
    attack: 'open very many or short sessions, or request large output and not read it',
    by: ['subject'],
    stopped:
      'On each replica, a grant has at most 64 sessions, all together 1,000; it begins 200 at once, then 10 a second (`TooManySessions`). The end deletes a session’s object. The gateway reads no faster than the client.',
    remains: 'The users of 16 grants can fill a replica.',
    tests: ['gateway/hostile-clients', 'unit/gateway/sessions', 'unit/gateway/session-objects'],
  },
  {
    attack: 'write a template that lets groups through the gateway, or grants calls that it does not pass',
    by: ['editor'],
    stopped: 'The webhook and the leader deny it.',
    tests: ['unit/access/policy/template-policy', 'unit/access/lifecycle/gateway-grants'],
  },
  {
    attack: 'create a Role that lets a user connect by another grant',
    by: ['thief of access'],
    stopped: 'An admission policy allows in it only the grant of the Role’s own name.',
    tests: ['access/policies'],
  },
  {
    attack: 'hide a session: open it without its AccessSession, change that object, or keep it by a finalizer',
    by: ['subject', 'editor'],
    stopped:
      'The gateway creates the object before the first byte, or refuses. By an admission policy, only it creates and changes one, without finalizers.',
    remains: 'Reads of logs have no AccessSession.',
    tests: ['gateway/access-sessions', 'faults/chart/gateway-install'],
  },
  {
    attack: 'create false AccessSessions, end sessions of others, or read who is connected',
    by: ['colleague', 'editor'],
    stopped:
      'An admission policy denies creation (`StatusReserved`). Of the roles for users, only `drawbridge-session-auditor`, which the chart binds to no user, allows the others.',
    tests: ['faults/chart/gateway-install'],
  },
  {
    attack: 'keep a session whose AccessSession was deleted, while the gateway’s watch is broken',
    by: ['subject'],
    stopped:
      'Every 30 s, a replica reads those objects of its sessions that its watch does not show. After 90 s without the API server, it ends them.',
    tests: ['unit/gateway/session-objects', 'unit/gateway/sessions'],
  },
  {
    attack: 'take or delete the leader’s Lease, or send replicas to another address',
    by: ['thief'],
    stopped:
      'An admission policy limits the gateway to the Leases of its replicas and its certificate, and to IP addresses with a port.',
    remains: 'Replicas call any such address, but only a server with the serving certificate.',
    tests: ['faults/chart/gateway-install', 'unit/gateway/peers'],
  },
];

const recordings: readonly Attack[] = [
  {
    attack: 'reach another file, namespace, or session with links, encoded paths, or unusual names',
    by: ['subject', 'editor', 'colleague'],
    stopped:
      'Only names of namespaces and UUIDs become paths. The gateway decodes none, and refuses ambiguous ones. Neither it nor `drawbridge audit verify` follows links.',
    tests: ['unit/gateway/recording/folder', 'unit/audit/verify/recordings', 'gateway/live', 'unit/gateway/call-path'],
  },
  {
    attack: 'lose a recording by output that is too fast or too much for the storage',
    by: ['subject'],
    stopped:
      'While the storage is behind, the gateway stops reading from the Pod. Recording and session end after 5 s without an answer, or if over 1 MiB of the session or 64 MiB of all would wait, or above 1 GiB.',
    remains:
      'With `BestEffort`, the session continues unrecorded. Many sessions can fill the storage. The limit of 1 GiB has no test.',
    tests: ['unit/gateway/recording/recorder', 'gateway/recordings'],
  },
  {
    attack: 'hide input from a recording, or pass more than allowed, by ambiguous frames',
    by: ['subject'],
    stopped:
      'An invalid or unmasked frame ends the session (`BadFrame`); for exec and attach, also a fragmented message, or one on a channel that clients may not use.',
    tests: ['gateway/hostile-clients', 'unit/gateway/stream', 'unit/gateway/frames'],
  },
  {
    attack:
      'change, remove, or reorder recordings, also with the gateway’s credentials, or store an object in the place of the next part',
    by: ['storage user', 'thief'],
    stopped:
      '`drawbridge audit verify --recordings` compares them with the journal. [Versioning](../tasks/record-sessions-in-a-bucket.md) undoes deletions. The gateway never replaces an object.',
    remains: 'The last bytes of an unfinished recording are unproven. One whose place is taken is lost.',
    tests: ['unit/audit/verify/recordings', 'faults/gateway/recordings-in-s3'],
  },
  {
    attack: 'pose as the S3 server: redirect the gateway, exhaust its memory, get its credentials into logs',
    by: [],
    stopped: 'It follows no redirects, limits the size and time of answers, and logs no text of errors.',
    tests: ['unit/gateway/recording/s3-sink'],
  },
  {
    attack: 'read the recordings of other users',
    by: ['storage user', 'thief'],
    stopped: 'Nothing but the permissions of the volume or bucket',
    remains: 'Recordings are not encrypted.',
    tests: [],
  },
  {
    attack: 'hide from the reviewer of an emergency that a session was not recorded',
    by: ['subject'],
    stopped:
      'The gateway’s journal has a line `RecordingLost`, [with two exceptions](../tasks/record-sessions.md#when-a-recording-is-lost).',
    remains: 'The request does not show it.',
    tests: ['gateway/recordings'],
  },
  {
    attack: 'watch a session or read a recording without the permission, or without a line in the journal',
    by: ['colleague', 'subject', 'auditor'],
    stopped:
      'The API server authorizes `sessions/log` and `recordings/log`, and each call needs the front-proxy certificate. The line is written before the first byte.',
    tests: ['gateway/live', 'gateway/attacks', 'unit/gateway/view-handler'],
  },
  {
    attack: 'call a replica as another replica, or answer in its place',
    by: ['thief'],
    stopped: 'Both accept only the serving certificate from their Secret, and the one before its rotation.',
    remains:
      'In certificate mode `own`, the thief can read that Secret, and then watch sessions without a line in the journal.',
    tests: ['unit/gateway/peers', 'gateway/attacks'],
  },
  {
    attack: 'slow a session down, or exhaust memory, with viewers that do not read',
    by: ['auditor'],
    stopped: 'A view ends when 1 MiB waits for it. A session has at most 8, a replica 64.',
    remains: 'One auditor can take all places.',
    tests: ['gateway/live', 'unit/gateway/live-views'],
  },
  {
    attack:
      'act on an auditor’s terminal: type commands, fill the clipboard, hide lines, also behind a sequence without an end',
    by: ['subject'],
    stopped:
      '`drawbridge sessions tail` and `play` pass only safe control sequences, and show what follows 4,096 characters of one.',
    remains: 'Other players pass everything.',
    tests: ['unit/client/terminal-filter', 'gateway/live'],
  },
  {
    attack: 'print what looks like the end of the session, or a notice of the gateway',
    by: ['subject'],
    stopped: 'Nothing',
    remains: 'At the real end, `drawbridge sessions tail` exits with code 0; if it loses the view, with an error.',
    tests: [],
  },
  {
    attack: 'watch on after the permission was withdrawn',
    by: ['auditor'],
    stopped: 'Nothing',
    remains: 'Delete the AccessSession, which ends the session.',
    tests: [],
  },
];

const notify: readonly Attack[] = [
  {
    attack: 'learn the reasons of requests in another namespace',
    by: ['notification writer'],
    stopped:
      'A subscription tells only about requests of its own namespace. A provider takes only subscriptions of its namespace and of `spec.namespaces`.',
    tests: ['notify/confined'],
  },
  {
    attack:
      'reach services of the cluster or the cloud, by an address, a redirect, or a name that resolves differently later',
    by: ['notification writer'],
    stopped:
      'Only public addresses, and those that an administrator lists, are called. They are checked after the resolution, in every form of IPv4 and IPv6. The connection goes to a checked address, and redirects are refused.',
    remains:
      'Public addresses are reachable, unless `networkPolicy.notifyCIDRs` limits them. Within `notify.allowedCIDRs`, it can try ports, and read up to 512 characters of HTTPS answers.',
    tests: ['notify/confined', 'unit/notify/sink/destination', 'unit/notify/sink/send'],
  },
  {
    attack: 'let drawbridge send the Secret of another user to an own address',
    by: ['notification writer', 'editor'],
    stopped:
      'Only Secrets of one type, in the namespace of the provider, are read, and RBAC limits the namespaces. Credentials go only to the address of the same Secret. Answers of sinks are shown without them.',
    remains: 'The status shows the host of an address in a Secret, not its path.',
    tests: ['notify/confined', 'unit/notify/sink/sink-of', 'unit/notify/sink/send'],
  },
  {
    attack: 'hide a link, a mention, a mail header, or HTML in a reason, a name, or a vote',
    by: ['colleague', 'voter'],
    stopped: 'Each medium gets texts as text, without control characters, and cut.',
    remains: 'The text itself may lie.',
    tests: ['unit/notify/media/hostile', 'unit/notify/media/email', 'unit/notify/addresses'],
  },
  {
    attack: 'flood a sink or the outbox with requests, so that others are not told',
    by: ['colleague'],
    stopped:
      'A provider gets at most ten messages at once, then one a second, and then digests. Each provider has its own queue, and each namespace a part of the outbox.',
    remains: 'A digest has at most 100 events, of which people see 20 titles.',
    tests: ['unit/notify/outbox/outbox'],
  },
  {
    attack: 'use drawbridge’s permissions',
    by: ['thief'],
    stopped:
      'The token of `drawbridge-notify` can read requests, templates, sessions, and both kinds, and write the status of those.',
    remains:
      'It reads all Secrets in `notify.secretNamespaces`. By writing the outbox, it can forge messages, delete those that wait, and silence others.',
    tests: ['chart/notify-manifests'],
  },
];

const consolePage: readonly Attack[] = [
  {
    attack: 'call the console from another page: fetch, a form, a frame, or a name that resolves to 127.0.0.1',
    by: [],
    stopped:
      'Each call needs a token in a header that no other page knows. `Host`, `Origin`, and `Sec-Fetch-Site` are checked; no other origin may read an answer, and no page may frame it.',
    tests: ['console/attackers', 'unit/client/console/guard'],
  },
  {
    attack: 'use the console of another user of the machine',
    by: [],
    stopped:
      'It listens on 127.0.0.1 only, and the token is in no argument of a process. The file that opens the browser is readable by its user only, and is soon deleted.',
    remains:
      'The administrator of the machine, and who reads the URL that `--no-open` prints, or the history of the browser. With `--port`, another user who had the port before can have left a service worker in the browser, which acts as the page.',
    tests: ['console/attackers'],
  },
  {
    attack: 'use a stolen URL of the console later',
    by: [],
    stopped: 'The token ends with the process, by Ctrl-C or after 30 minutes without use.',
    tests: ['console/attackers'],
  },
  {
    attack: 'replace a request by another one of the same name while its approver reads it',
    by: ['requester'],
    stopped: 'A vote of the console names the uid of the request, and the version of the template, that it showed.',
    tests: ['unit/client/votes', 'unit/client/console/request-page'],
  },
  {
    attack: 'use a stolen token for more than the page does: read Secrets, enter pods, impersonate, or read files',
    by: [],
    stopped: 'There is no proxy: only commands and flags on a list, none of which does this.',
    remains: 'The thief can request, approve, and revoke as the user.',
    tests: ['console/attackers', 'unit/client/console/runs'],
  },
  {
    attack: 'hide a script, a link, or control characters in a name, a reason, or the output of a session',
    by: ['colleague', 'subject'],
    stopped:
      'The page shows texts as text, and its policy allows no script but its own. Links are https only. Output stays in the box of the player.',
    remains: 'The text itself may lie.',
    tests: ['console/attackers'],
  },
];

const server: readonly Attack[] = [
  {
    attack: 'take drawbridge down, so that administrators cannot repair the cluster',
    by: [],
    stopped:
      'Then the API server denies users only entries into Pods named `…-access`, but not in `kube-system` or the namespace of drawbridge.',
    tests: ['access/server-down'],
  },
  {
    attack: 'learn from dry runs which Pods the API server accepts, or flood it with them',
    by: ['editor'],
    stopped:
      'Only for an author who holds all that the template hands out, and `create` on Pods; for each version at most three, of 2 s each, repeated at a limited rate.',
    tests: ['unit/access/template/template-judge', 'unit/access/template/grant-dry-runs'],
  },
  {
    attack:
      'send hostile reviews: too large, too deep, too slow, with dangerous keys, or with endless names and groups, to fill logs and metrics',
    by: [],
    stopped:
      '[Limits](../reference/webhook-port.md) of size, depth, time, names, uids, groups, and extra fields, of series of a metric (1,000), and of logged values (4,096 characters)',
    tests: [
      'fuzz/admission',
      'fuzz/reference',
      'faults/admission/slow-clients',
      'unit/admission/review-limits',
      'unit/observe/metrics',
      'unit/observe/log',
      'faults/access/own-certificates',
    ],
  },
  {
    attack: 'block the API server or the kubelet by thousands of connections, unfinished bodies, or expensive reviews',
    by: [],
    stopped:
      'Source addresses [share budgets](../adr/0028-port-budgets.md) of connections, bytes, and processor time. When one is used up, the address that uses most loses work, large bodies and reviews first.',
    remains:
      'From the API server’s address, idle connections [can keep it out](../reference/webhook-port.md#clients-at-the-api-servers-address).',
    tests: [
      'unit/admission/server',
      'unit/admission/fair-queue',
      'unit/observe/http',
      'unit/kit/fair-share',
      'faults/admission/under-attack',
    ],
  },
  {
    attack: 'reopen closed access with a late event, or make drawbridge act on stale copies',
    by: [],
    stopped:
      'The end of a grant is final, and status writes carry the resourceVersion of their decision. Before the janitor deletes or votes open access, the leader reads from the API server.',
    tests: [
      'faults/access/random-histories',
      'unit/access/lifecycle/status-writer',
      'unit/access/janitor',
      'unit/access/lifecycle/vote-attacks',
    ],
  },
  {
    attack: 'make two replicas lead, or let a frozen leader write later',
    by: [],
    stopped: 'Before each write, the leader checks that it still holds the Lease.',
    tests: ['faults/access/leader-election', 'unit/kube/lease-gate'],
  },
  {
    attack: 'call the webhooks: to write audit lines in the name of others, or to check permissions',
    by: ['editor'],
    stopped: 'With `--client-ca-file`, callers need a certificate. The network policy limits who reaches the port.',
    remains:
      'Otherwise, [a client that reaches the port](limits.md#forgery) can. It gets nothing that helps elsewhere.',
    tests: ['faults/access/own-certificates', 'access/without-webhooks'],
  },
  {
    attack: 'create a key Secret with known keys before the first start',
    by: [],
    stopped: 'drawbridge uses an existing Secret only with proof that it did so before, such as its public key.',
    remains: 'With `signingKeys.adopt`, it uses any.',
    tests: ['chart/access-install', 'unit/access/signing/key-secret'],
  },
  {
    attack: 'break into one feature, and use the permissions, keys, or network peers of another',
    by: [],
    stopped: 'In the chart, each has its own ServiceAccount, NetworkPolicy, and keys.',
    tests: ['chart/inventory-manifests'],
  },
  {
    attack: 'intercept calls between the API server and the webhooks',
    by: [],
    stopped:
      'In certificate mode `own`, drawbridge signs one certificate by a CA whose key it discards, and restores a changed `caBundle`.',
    remains: 'In other modes, an attacker with your CA’s key can.',
    tests: ['faults/access/own-certificates'],
  },
  {
    attack: 'change something with dry runs',
    by: ['colleague'],
    stopped: 'Nothing is stored, and webhooks mark the audit line with `dryRun: true`.',
    tests: ['access/dry-run'],
  },
  {
    attack: 'find secrets in the journal, or names of users in metrics',
    by: [],
    stopped:
      'Lines have only [the listed fields](../reference/audit-journal.md), no commands of sessions. Metrics name no users.',
    tests: ['unit/audit/record', 'access/pod-entry', 'access/metrics'],
  },
  {
    attack: 'change the audit journal afterwards',
    by: [],
    stopped:
      'Each line has the hash of the line before. About every 5 s, each process stores a signed head in the cluster, for `drawbridge audit verify`.',
    remains: 'Lines after the last head are [unproven](limits.md#evidence).',
    tests: ['access/audit-journal', 'unit/audit/verify/property'],
  },
  {
    attack: 'fill the disk, so that access opens without a line in the journal',
    by: [],
    stopped: 'Access opens only after its line, and closes without waiting. A later line has the number of lost lines.',
    remains: 'Other calls, such as direct exec, pass without a line.',
    tests: ['access/audit-journal'],
  },
];

const inventory: readonly Attack[] = [
  {
    attack: 'read or write another entry, list entries, read other Secrets, change the spec, delete the entry',
    by: ['component', 'token thief'],
    stopped: '[Roles](../inventory/permissions-of-a-run.md) name their objects, and allow neither `list` nor `watch`.',
    tests: ['inventory/run-token'],
  },
  {
    attack:
      'write a status without a present run, the outputs of another component, conditions, other parts, or a reference to another Secret, which readers of the kubeconfig follow',
    by: ['component', 'token thief'],
    stopped:
      'A webhook checks the token against the record of the run, and denies the whole patch. A `secretRef` may name only the entry’s Secret `kc-<uid>`, without a namespace. The journal names the run.',
    tests: ['inventory/run-token', 'unit/inventory/policy/run-authorization', 'unit/inventory/policy/component-write'],
  },
  {
    attack: 'use a Secret that the attacker may not read as the kubeconfig of an entry',
    by: ['entry writer'],
    stopped:
      'A webhook records who named it (`spec.kubeconfigSetBy`). Before each run that needs it, drawbridge checks that this user may read it.',
    tests: ['inventory/kubeconfig-secret'],
  },
  {
    attack:
      'register a component that triggers itself or owns a path of another one for the same `spec.mode`, or delete a registration, so that no component tears down what it created',
    by: ['registration writer'],
    stopped: 'A webhook denies the first two, and the deletion while records of the component exist.',
    remains: 'Components may trigger each other; the condition `Cyclic` shows it.',
    tests: ['inventory/webhooks-away', 'inventory/kubectl'],
  },
  {
    attack:
      '[abandon a component](../inventory/run-the-inventory.md#abandon-a-component) in another name, or hide who did it',
    by: ['entry writer'],
    stopped: 'A webhook records the user who set the annotation.',
    tests: ['inventory/kubectl', 'unit/admission/entry-webhooks'],
  },
  {
    attack: 'create a `ReconcileRun` with the name of a future record',
    by: [],
    stopped: 'A record counts only with the uid of the entry.',
    remains:
      'Meanwhile, the component does not run; with the right uid, the forgery counts. Let no user write `ReconcileRun`s.',
    tests: ['unit/inventory/stores/kube-run-store'],
  },
  {
    attack: 'enlarge an entry until no component can work with it',
    by: ['entry writer', 'component'],
    stopped: 'A webhook denies growth above 64 KiB.',
    remains: 'Not while it does not answer. One component’s outputs can use up the 64 KiB.',
    tests: ['inventory/webhooks-away'],
  },
  {
    attack: 'forge a report, also by a record and a ServiceAccount named like those of an entry in another namespace',
    by: ['token thief'],
    stopped:
      'By a TokenReview, the token’s ServiceAccount and ID must be those of the run, in the namespace of its entry.',
    tests: ['inventory/run-token', 'unit/inventory/stores/kube-run-store'],
  },
  {
    attack: 'forge a call to a component',
    by: ['token thief'],
    stopped:
      'Only the component, which must check the token’s ServiceAccount (`drawbridge-inventory`) and audience (`drawbridge/<component>`).',
    tests: [],
  },
  {
    attack: 'trigger the components of another entry by an object with its label',
    by: [],
    stopped: 'An object counts only in the namespace of the entry, or in one that the registration names.',
    remains: 'An object without a namespace triggers those of any entry.',
    tests: ['unit/inventory/remote/hub'],
  },
  {
    attack: 'fill the memory of drawbridge from a managed cluster',
    by: ['entry writer'],
    stopped: 'Each watch keeps at most 5,000 objects.',
    remains: 'A page of a list, up to 256 MiB, is read before.',
    tests: ['unit/inventory/remote/hub', 'unit/kube/list-watch'],
  },
  {
    attack:
      'block all components with an entry on which drawbridge cannot [prove its webhook](../inventory/permissions-of-a-run.md#how-drawbridge-limits-a-run)',
    by: ['entry writer'],
    stopped: 'It tries the next entry.',
    tests: ['unit/inventory/accounts/tokens'],
  },
  {
    attack: 'create a Role, RoleBinding, or Secret before drawbridge does',
    by: ['entry writer'],
    stopped:
      'If it does not belong to the entry, or a wrong field cannot be changed (`roleRef`, `immutable`), no run starts.',
    tests: ['unit/inventory/accounts/entry-accounts'],
  },
  {
    attack: 'add a subject to a RoleBinding, or read the kubeconfig after its removal from the registration',
    by: ['entry writer', 'component'],
    stopped:
      'The first needs the Role’s permissions, or `bind`. Before the component’s next run, drawbridge removes both.',
    remains: 'Until then, the subject or token keeps access.',
    tests: ['unit/inventory/accounts/entry-accounts'],
  },
  {
    attack: 'take the webhooks down, to write without checks or to lock users out',
    by: [],
    stopped:
      'Then the API server denies writes of registrations, status writes by components, and changes of `spec.kubeconfigSecretRef` and abandon annotations.',
    remains: 'Other writes by users succeed.',
    tests: ['inventory/webhooks-away'],
  },
  {
    attack: 'use the permissions of drawbridge after a break-in',
    by: [],
    stopped:
      'No wildcard, `escalate`, or `bind`. It writes entries and records only in `inventory.namespaces`, and uses in its own namespace only some Secrets and ServiceAccounts.',
    remains: 'In `inventory.namespaces`, [it may use all of both](limits.md#inventory).',
    tests: ['chart/inventory-manifests'],
  },
];

const binding: readonly Attack[] = [
  {
    attack:
      'send a kubeconfig that runs a program, reads files, uses a proxy, trusts any authority, or impersonates a user',
    by: ['provider'],
    stopped:
      'Accepted are only an https server, inline authority, inline token or client certificate, TLS name, and namespace. No Kubernetes library reads the text.',
    tests: ['unit/kube/kubeconfig'],
  },
  {
    attack: 'name another server in a later kubeconfig, to reach into your network or receive your token',
    by: ['provider'],
    stopped:
      'It is copied into your Secret only with the same scheme, host, port, and path, after a test; with the annotation `binding.drawbridge.dev/keep-kubeconfig: "true"`, never.',
    tests: ['unit/binding/cluster-binding/controller', 'binding/rotation'],
  },
  {
    attack: 'receive your objects at another cluster under the same name and address',
    by: ['provider'],
    stopped:
      'drawbridge verifies the TLS certificate and, with a new kubeconfig, the uid of your namespace at the provider.',
    remains: 'Not the uid after a restart, or if drawbridge may not read that Namespace.',
    tests: ['unit/binding/sessions/session-reconciler', 'binding/bad-input'],
  },
  {
    attack: 'replace one of your CustomResourceDefinitions, or take its name first',
    by: ['provider'],
    stopped:
      'drawbridge changes only a definition that the binding owns, and creates only kinds in `binding.bindable` (`--bindable`).',
    tests: [
      'unit/binding/service-binding/bindings',
      'unit/binding/service-binding/unbinding',
      'chart/binding-manifests',
    ],
  },
  {
    attack: 'define a conversion webhook, so that your API server sends it every object',
    by: ['provider'],
    stopped: 'None is copied. If versions need one, only one version is served.',
    tests: ['unit/binding/service-binding/bound-crd'],
  },
  {
    attack: 'create namespaces of its choice in your cluster',
    by: ['provider'],
    stopped: 'With `binding.bindableNamespaces`, only those are created.',
    remains: 'By default, any that does not exist is created.',
    tests: ['faults/chart/binding-install'],
  },
  {
    attack: 'overwrite or delete a Secret, ConfigMap, or ServiceAccount of yours by one of the same name',
    by: ['provider'],
    stopped:
      'drawbridge overwrites only objects with the label `kube-bind.io/owner: provider`, deletes only copies of this provider’s objects, and creates objects only in [some namespaces](../binding/claims.md#what-a-provider-can-write).',
    tests: ['unit/binding/claims/plan-properties', 'unit/binding/claims/open-claims-down'],
  },
  {
    attack:
      'claim other kinds, such as Pods, or credentials: kubeconfigs of other providers, tokens of ServiceAccounts, drawbridge’s keys',
    by: ['provider'],
    stopped:
      'Only ConfigMaps, Secrets, and ServiceAccounts can be claimed; with the chart, only those in `binding.claimable`, by default none. [Some objects are never shared](../binding/claims.md#what-is-never-shared).',
    remains: 'Other credentials in claimed Secrets are shared.',
    tests: [
      'unit/binding/claims/open-claims',
      'chart/binding-manifests',
      'unit/binding/claims/exemption',
      'binding/bad-input',
    ],
  },
  {
    attack: 'remove all exports, and with them your bindings, kinds, and objects',
    by: ['provider'],
    stopped:
      'An export that is missing from a list [deletes nothing](../adr/0019-bundles-delete.md). Bindings without a bundle stay.',
    remains: 'An observed deletion deletes the binding of the bundle, and your objects.',
    tests: ['unit/binding/bundles/controller'],
  },
  {
    attack: 'let your server write to the copies of other consumers',
    by: ['other consumer'],
    stopped:
      'It changes only a copy that names your namespace at the provider, and deletes one only if it also names your object.',
    tests: ['binding/scenarios', 'unit/binding/claims/plan', 'unit/binding/sync/left-copies'],
  },
  {
    attack: 'delete newer copies at the provider, by restoring your cluster from an old backup',
    by: [],
    stopped:
      'If 20 or more objects of a kind are missing within a minute, without an observed deletion, [their copies stay](../binding/concept.md#what-is-never-deleted-by-mistake).',
    remains: 'Copies of fewer may be deleted.',
    tests: ['unit/binding/claims/open-claims-faults', 'binding/lost-objects'],
  },
  {
    attack: 'send no answers, slow answers, denials, or invalid objects',
    by: ['provider'],
    stopped:
      'Each provider has its own connections and backoff. Such answers delete nothing. Schemas check objects, and an invalid spec is not used.',
    tests: ['faults/binding/provider-away', 'unit/api/binding/kinds', 'unit/binding/stores/stores'],
  },
  {
    attack: 'fill your cluster with Events',
    by: ['provider', 'other consumer'],
    stopped:
      'For each `action`, a replica writes 300 at once, then 5 a second; for one object and action, 25 different ones, then one every five minutes.',
    tests: ['unit/kube/event-recorder'],
  },
  {
    attack: 'use drawbridge’s permissions in your cluster after a break-in',
    by: ['provider'],
    stopped:
      'No wildcard, `escalate`, or `bind`. It changes and deletes only definitions that RBAC lists by name, and only reads and patches bound objects.',
    remains:
      'It may create any definition and namespace, read and write Secrets in `kube-bind` and `binding.secretNamespaces`, and write bindings and all `binding.claimable`.',
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
      '`BestEffort` is a value of [`session.record`](../tasks/record-sessions.md) in the template; for emergency access, `Required` works like it. A view shows a session while it is open, or its recording.',
    rows: recordings,
  },
  Notifications: { rows: notify },
  'The console': { rows: consolePage },
  'drawbridge, its keys, and its journal': { rows: server },
  Inventory: {
    intro:
      'A namespace of entries is a trust boundary: a user who may create Pods in it can run them under any ServiceAccount there.',
    rows: inventory,
  },
  Binding: {
    intro:
      'Your cluster is the consumer. A copy is the object that drawbridge creates in one cluster for an object of the other. Also trusted are users who may write APIServiceBindings, their bundles, or Secrets in `kube-bind` or `binding.secretNamespaces`.',
    rows: binding,
  },
};
