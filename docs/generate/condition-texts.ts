import type { RequestCondition, summaryConditions, TemplateCondition } from '../../src/api/access/names.ts';
import type { BindReason } from '../../src/api/binding/reasons.ts';
import type { entryConditions, registrationConditions } from '../../src/api/inventory/names.ts';

type ValueOf<T> = T[keyof T];

/** Reasons of each condition, and what to do; Markdown. The types require a text for each condition. */
export const templateConditionTexts: Readonly<Record<TemplateCondition, string>> = {
  TemplateDurationsValid: '`NotAcceptable`: correct `defaultDuration` and `maxDuration`.',
  TargetRefExists: '`NotFound`: create the workload, or correct `controllerTargetRef`.',
  AccessCommandValid: '`InvalidAccessCommand`: correct `accessCommand`.',
  AuthorHoldsRights:
    '`AuthorUnknown`, `AuthorLacksRights`: see [template authors](../concepts/template-authors.md). `InvalidTemplate`, `PoliciesMissing`: see [codes](codes.md).',
  GatewayAvailable:
    'Only with `session.via: Gateway`. `GatewayUnavailable`: the APIService of the gateway is missing or not Available; the message says what to do.',
  AccessPlanValid:
    'The [code](codes.md) with which drawbridge would deny every request now. It denies no request itself and ends no grant. `InvalidAccessCommand` of an `ExecAccessTemplate`: access opens, but drawbridge cannot write its command. `ResourceRefused`: the API server rejects the Pod or Role in a dry run. `FieldsIgnored`: it is True, and the message names fields that the API server ignores. `NotPlanned`: this template waits to be checked.',
};

export const requestConditionTexts: Readonly<Record<RequestCondition, string>> = {
  TargetTemplateExists:
    '`NotFound`: no such template. `TemplateNotReady`: a condition of the template other than `AccessPlanValid` is False. Final.',
  AccessDurationsValid: '`NotAcceptable`: the duration is malformed or too short. Final.',
  AccessStillValid:
    'What ended the request, such as `Expired`, `Revoked`, or `TargetPodGone`; the message has the time. `Timeout`: the granted time passed before access could open. `Denied`: access was denied while it opened; another condition has the code. Final. Unknown with `ResourceRefused`: the access is to end, but drawbridge may not delete its objects, which the message names.',
  AccessResourcesCreated:
    'Any [code](codes.md): access could not open. Final. True with `AccessEnded`: access has ended, and the objects are deleted.',
  AccessResourcesReady:
    '`NotYetReady`: the Pod is not Ready; the message says what it waits for. `PoliciesMissing`: access waits until the [admission policies](admission-policies.md#while-they-are-not-in-force) are in force. `AccessEnded`: access has ended.',
  AccessApproved:
    'Only for requests that wait for people, their time, or a claim. `Unknown` while the request waits; the message says for what and until when. Another code, such as `TemplateNotReady` or `NoRunningPod`: the approved request waits for its template or workload. False once it is denied or withdrawn: by a vote (`Denied`), or a [code](codes.md), `NotApproved` or `NotClaimed`.',
  AccessShortened:
    'Only for access shorter than asked; does not count for `ready`. `LessThanAsked`: the template or a vote allows less. `TemplateChanged`: an edit of the template ends the access earlier; False with `AsGranted` once another edit restores the end, or an extension reaches what was asked.',
  PodLimited:
    'Only for access pods; does not count for `ready`. `LimitedByTemplate`: `maxCpu`, `maxMemory`, or `maxStorage` set or lowered limits or requests, which the message names with their values.',
  AccessMessage:
    'True: its message is the command. `InvalidAccessCommand`: access is open, but the command of the template does not fit the Pod; `drawbridge watch NAME` prints one that works. `AccessEnded`: access has ended.',
};

export const summaryConditionTexts: Readonly<Record<ValueOf<typeof summaryConditions>, string>> = {
  Ready:
    'True once every other condition is True. False at the end of a request, with the reason `Expired`, `Revoked`, or `Denied`.',
  Reconciling:
    'True while the object may become ready without an edit, for example once its Pod starts. Absent otherwise.',
  Stalled: 'True if only an edit of the template or a new request helps. Absent otherwise.',
};

export const bindReasonTexts: Readonly<Record<BindReason, readonly [condition: string, text: string]>> = {
  KubeconfigSecretNotFound: ['SecretValid', 'The Secret does not exist: create it, or run `kubectl bind` again.'],
  KubeconfigSecretInvalid: [
    'SecretValid',
    'The Secret lacks the key or a kubeconfig, or drawbridge does not accept it or may not read the Secret. If a new kubeconfig does not work, the old one stays in use.',
  ],
  APIServiceBindingInvalid: [
    'SecretValid',
    'The binding is malformed: correct the field that the message names, or delete the binding.',
  ],
  InformersSyncing: [
    'InformersSynced',
    'drawbridge has just started or connected, or the API server does not serve a new kind yet: wait. With severity Warning, two attempts have failed; the message has the cause.',
  ],
  InformerSyncTimeout: [
    'InformersSynced',
    'The provider did not answer all lists within 2.5 minutes; the message names the kinds. Check the network, the kubeconfig, and its permissions. drawbridge retries.',
  ],
  ClusterBindingUpdateFailed: [
    'Heartbeating',
    'drawbridge cannot write its heartbeat: the provider is unreachable, or has revoked the credentials. Once it answers again, drawbridge syncs everything.',
  ],
  APIServiceExportNotFound: [
    'Connected',
    'The provider has no export of that name: request it, or delete the binding.',
  ],
  APIServiceExportInvalid: [
    'Connected',
    'The export is malformed, or has more than 256 resources or 256 claims. drawbridge deletes nothing. The provider must correct it.',
  ],
  APIServiceExportFailed: ['Connected', 'The provider rejected the request; the message has its reason.'],
  InvalidPermissionClaim: [
    'Connected',
    'The export claims objects that a provider cannot claim; the claim is ignored.',
  ],
  InvalidClaimableAnnotation: [
    'Connected',
    'The annotation `binding.drawbridge.dev/claimable` is invalid. drawbridge shares nothing until you correct it.',
  ],
  ObjectsNotInSync: [
    'Connected',
    'drawbridge cannot sync some objects. The message names the five worst problems; Events on the objects name each. After a restart, the condition can be True for some seconds, until drawbridge has found them again.',
  ],
  WatchRefused: [
    'Connected',
    'A cluster no longer lets drawbridge list and watch kinds; the message names them, and what to do.',
  ],
  Unbinding: ['Connected', 'The binding is being deleted; the message says what it waits for.'],
  ResourceNotAllowed: ['Connected, SchemaInSync', 'The kind is not in `--bindable`: add it, or delete the binding.'],
  ForeignCustomResourceDefinition: [
    'Connected, SchemaInSync',
    'A CustomResourceDefinition of that name exists that was not created for this binding. Delete it, which deletes all its objects, or delete the binding.',
  ],
  BoundSchemaFetchFailed: [
    'Connected, SchemaInSync',
    'The provider exports a kind without a readable schema. The provider must correct it.',
  ],
  CustomResourceDefinitionCreateFailed: [
    'Connected, SchemaInSync',
    'The API server rejects the CustomResourceDefinition. The provider must correct it.',
  ],
  CustomResourceDefinitionUpdateFailed: [
    'Connected, SchemaInSync',
    'The API server rejects a change of the CustomResourceDefinition. The provider must correct it.',
  ],
  CustomResourceDefinitionNotWritten: [
    'SchemaInSync',
    'drawbridge could not write the CustomResourceDefinition, usually for lack of permission. It retries.',
  ],
  CustomResourceDefinitionTerminating: [
    'SchemaInSync',
    'A CustomResourceDefinition of that name is being deleted: wait.',
  ],
  CustomResourceDefinitionNamesNotAccepted: [
    'SchemaInSync',
    'Another CustomResourceDefinition uses one of the names: delete it, which deletes all its objects, or the binding.',
  ],
  ListExportsFailed: ['Synced', 'The provider does not list its exports. drawbridge retries.'],
  SyncErrors: ['Synced', 'drawbridge could not create or delete some bindings. It retries.'],
  ExportsVanished: [
    'Synced',
    'The provider no longer lists some exports. drawbridge keeps their bindings, because it observed no deletion, or one that may be unintended; the message has the cause. To unbind, delete the bundle with `--cascade=orphan`, and then these bindings.',
  ],
  ProviderSecretNotFound: ['SecretValid', 'On the ClusterBinding: the provider has no Secret for this consumer.'],
  ProviderSecretInvalid: [
    'SecretValid',
    'On the ClusterBinding: the Secret of the provider contains no usable kubeconfig.',
  ],
  ParseError: ['ValidVersion', 'On the ClusterBinding: the version of the konnector cannot be parsed.'],
  APIServiceBindingNotFound: ['Connected', 'On the export: the consumer has no binding for it.'],
  BoundSchemasNotValid: ['Connected', 'On the export: the consumer cannot use its schemas; the message has the cause.'],
  NA: ['ConsumerInSync', 'On the export: True or False do not apply.'],
  Unknown: ['ConsumerInSync', 'On the export: the state is not known yet.'],
};

export const entryConditionTexts: Readonly<Record<ValueOf<typeof entryConditions>, string>> = {
  Ready:
    'True once every component that applies is Done with the current inputs. If False, the reason is the worst state of a component, `Suspended` (also if a suspended entry is being deleted), `NoComponents`, `TooLarge` (drawbridge starts no run), or `Deleting`. The message always says if the entry is suspended, and which components it names that are not registered.',
  RemoteWatchHealthy:
    '`NotWatching`: a watch in the managed cluster does not work; its components run every five minutes.',
  Livelock:
    'True, `InputsReturn`: the inputs of a component repeatedly return to earlier values, so it runs less often. The message names the component, and the paths if drawbridge knows them. It stays True until a later run whose inputs no longer return. drawbridge does not notice values that never return, such as a counter, or that return only after more than ten others.',
};

export const registrationConditionTexts: Readonly<Record<ValueOf<typeof registrationConditions>, string>> = {
  Accepted: '`Refused`: the component does not run; the message names the rule that its registration breaks.',
  Reachable:
    '`NotAnswering`: the circuit breaker of the endpoint is open; the message has the call that opened it. drawbridge probes the endpoint. True, `Answering`, also before the first call.',
  Cyclic:
    'True, `ReadsItself`: the component reads fields that depend on its own output, through other components. That is harmless if the values become stable. Otherwise, each component runs up to five times a second, unless the condition `Livelock` of the entry slows it down: suspend the entry, and correct a component.',
};

/** By reason: the kind, and what to do. */
export const notifyReasonTexts: Readonly<Record<string, readonly [kind: string, text: string]>> = {
  Unproven: [
    'provider',
    'The spec is valid, but nothing was sent yet, so the status is Unknown: `drawbridge notify test` sends a test message.',
  ],
  SpecInvalid: ['provider', 'A field is wrong, or one is missing; the message names it. It is judged without sending.'],
  SecretInvalid: [
    'provider',
    'The Secret does not exist, has another type than `access.drawbridge.dev/notification-provider`, or a key is missing or wrong; the message says which. Correct it, then run `drawbridge notify test`.',
  ],
  SecretUnreadable: [
    'provider',
    'RBAC does not let drawbridge read the Secret: add the namespace to the chart value `notify.secretNamespaces`, or [bind a Role](../concepts/notifications.md#enable-it). Then run `drawbridge notify test`.',
  ],
  AddressNotAllowed: [
    'provider',
    'The address is not public: use another one, or add it to the chart value `notify.allowedCIDRs`.',
  ],
  Refused: ['provider', 'The sink answered with an error, which the message has. drawbridge tries again.'],
  Unreachable: [
    'provider',
    'The sink did not answer in time: check its address, its certificate, and the NetworkPolicy. drawbridge tries again.',
  ],
  Gone: [
    'provider',
    'The sink answered 410. drawbridge sends nothing until you change the provider, or `drawbridge notify test` is delivered.',
  ],
  Suspended: ['provider', '`spec.suspend` is true.'],
  ProviderNotFound: ['subscription', 'There is no provider of that name: create it, or correct `providerRef`.'],
  ProviderNotAllowed: [
    'subscription',
    '`spec.namespaces` of the provider does not name this namespace: ask its owner.',
  ],
  ProviderNotReady: ['subscription', 'Messages wait, because `Ready` of the provider is False: see there.'],
  TooManySubscriptions: [
    'subscription',
    'The namespace has more than 100, of which drawbridge uses the first by name: delete others.',
  ],
  SelectorInvalid: ['subscription', '`spec.templateSelector` is malformed; the message says how.'],
  RequesterNeedsEmail: ['subscription', '`to: Requester` needs a provider of type Email.'],
};
