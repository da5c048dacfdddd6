import type { RequestCondition, summaryConditions, TemplateCondition } from '../../src/api/access/names.ts';
import type { BindReason } from '../../src/api/binding/reasons.ts';
import type { entryConditions, registrationConditions } from '../../src/api/inventory/names.ts';

type ValueOf<T> = T[keyof T];

/** Reasons of each condition, and what to do; Markdown. The types require a text for each condition. */
export const templateConditionTexts: Readonly<Record<TemplateCondition, string>> = {
  TemplateDurationsValid:
    '`NotAcceptable`: correct `defaultDuration` and `maxDuration`. The webhook denies new templates with this error.',
  TargetRefExists:
    '`NotFound`: create the workload, or correct `controllerTargetRef`. The template becomes ready when the workload exists.',
  AccessCommandValid:
    '`InvalidAccessCommand`: correct `accessCommand`. The webhook denies new templates with this error.',
  AuthorHoldsRights:
    '`AuthorUnknown`, `AuthorLacksRights`: see [template authors](../concepts/template-authors.md). `InvalidTemplate`: see [codes](codes.md).',
  GatewayAvailable:
    'Only for templates with `session.via: Gateway`. `GatewayUnavailable`: the APIService of the gateway is missing or not Available; the message says what to do. The template becomes ready when it is Available.',
  AccessPlanValid:
    'The [code](codes.md) with which the server would deny every request now, by this template and the objects that its plan reads. Requests read the same objects again, so it denies no request itself and ends no grant. `InvalidAccessCommand` of an `ExecAccessTemplate`: access opens, but the server cannot write its command. `ResourceRefused`: the API server rejects the Pod or the Role in a dry run. `FieldsIgnored`: it is True, and the message names fields that the API server ignores. `NotPlanned`: the server checks many templates, and this one waits.',
};

export const requestConditionTexts: Readonly<Record<RequestCondition, string>> = {
  TargetTemplateExists:
    '`NotFound`: the namespace has no such template. `TemplateNotReady`: a condition of the template other than `AccessPlanValid` is False. Final.',
  AccessDurationsValid: '`NotAcceptable`: the duration is malformed or too short. Final.',
  AccessStillValid:
    'What ended the request, for example `Expired`, `Revoked`, or `TargetPodGone`; the message has the time. `Timeout`: the granted time passed before the server could open access. `Denied`: access was denied while it opened; another condition has the code. Final.',
  AccessResourcesCreated:
    'Any [code](codes.md): the server could not open access. Final. True with `AccessEnded`: access has ended, and the server deleted the objects.',
  AccessResourcesReady:
    '`NotYetReady`: the Pod is not Ready yet; the message says what it waits for. `AccessEnded`: access has ended.',
  AccessApproved:
    'Only for requests that wait for other people, for their time, or for a claim. `Unknown` while the request waits; the message says for what and until when. Another code, such as `TemplateNotReady` or `NoRunningPod`: the request is approved, and waits for its template or workload. False once the request is denied or withdrawn: `NotApproved` and `NotClaimed` are [codes](codes.md), and `Denied` is a vote.',
  AccessShortened:
    'Only for access that is shorter than asked, and it does not count for `ready`. `LessThanAsked`: the template or a vote allows less. `TemplateChanged`: an edit of the template ends the access earlier; False with `AsGranted` once another edit restores the end, or an extension reaches what was asked.',
  PodLimited:
    'Only for access pods, and it does not count for `ready`. `LimitedByTemplate`: `maxCpu`, `maxMemory`, or `maxStorage` of the template set or lowered limits or requests; the message names each with its values.',
  AccessMessage:
    '`InvalidAccessCommand`: the Pod is Ready, but the server cannot render the command of the template for it. Access is open: `drawbridge watch NAME` prints a command that works. `AccessEnded`: access has ended. If it is True, its message is the command.',
};

export const summaryConditionTexts: Readonly<Record<ValueOf<typeof summaryConditions>, string>> = {
  Ready:
    'True once every other condition is True. A request that is over has Ready False from that moment, with the reason `Expired`, `Revoked`, or `Denied`.',
  Reconciling:
    'True while the object may become ready without an edit: its Pod starts, its workload is created, or its author gets the permissions. Absent otherwise.',
  Stalled: 'True if only an edit of the template or a new request helps. Absent otherwise.',
};

export const bindReasonTexts: Readonly<Record<BindReason, readonly [condition: string, text: string]>> = {
  KubeconfigSecretNotFound: ['SecretValid', 'The Secret does not exist: create it, or run `kubectl bind` again.'],
  KubeconfigSecretInvalid: [
    'SecretValid',
    'The Secret lacks the key or a kubeconfig, the server does not accept the kubeconfig, or it may not read the Secret. If a new kubeconfig does not work, the server continues to use the old one.',
  ],
  APIServiceBindingInvalid: [
    'SecretValid',
    'The binding is malformed: correct the field that the message names, or delete the binding.',
  ],
  InformersSyncing: [
    'InformersSynced',
    'The server has just connected, or the API server does not serve a new kind yet: wait. With the severity Warning, two attempts have failed; the message has the cause.',
  ],
  InformerSyncTimeout: [
    'InformersSynced',
    'The provider did not answer all lists within 2.5 minutes; the message names those kinds. Check the network, the kubeconfig, and its permissions; the server retries.',
  ],
  ClusterBindingUpdateFailed: [
    'Heartbeating',
    'The server cannot write its heartbeat to the provider: the provider is unreachable, or has revoked the credentials. When the provider answers again, the server syncs everything.',
  ],
  APIServiceExportNotFound: [
    'Connected',
    'The provider has no export with the name of the binding: request it, or delete the binding.',
  ],
  APIServiceExportInvalid: [
    'Connected',
    'The export is malformed, or has more than 256 resources or 256 claims. It counts as present, so the server deletes nothing. The provider must correct it.',
  ],
  APIServiceExportFailed: ['Connected', 'The provider rejected the request; the message has its reason.'],
  InvalidPermissionClaim: [
    'Connected',
    'The export claims objects that a provider cannot claim. The server ignores that claim.',
  ],
  InvalidClaimableAnnotation: [
    'Connected',
    'The annotation `binding.drawbridge.dev/claimable` of the binding is invalid. The server shares nothing until you correct it.',
  ],
  ObjectsNotInSync: [
    'Connected',
    'The server cannot sync some objects. The message names the five worst problems; Events on the objects name each, within the limits of Events.',
  ],
  WatchRefused: [
    'Connected',
    'One of the clusters no longer lets the server list and watch kinds, which the message names with what to do.',
  ],
  Unbinding: ['Connected', 'The binding is being deleted; the message says what it waits for.'],
  ResourceNotAllowed: ['Connected, SchemaInSync', 'The kind is not in `--bindable`: add it, or delete the binding.'],
  ForeignCustomResourceDefinition: [
    'Connected, SchemaInSync',
    'A CustomResourceDefinition of that name exists that was not created for this binding. The server does not change it. Delete that definition or the binding; if you delete the definition, Kubernetes deletes all its objects.',
  ],
  BoundSchemaFetchFailed: [
    'Connected, SchemaInSync',
    'The provider exports a kind without a readable schema. The provider must correct it.',
  ],
  CustomResourceDefinitionCreateFailed: [
    'Connected, SchemaInSync',
    'The API server rejects the CustomResourceDefinition of the kind. The provider must correct it.',
  ],
  CustomResourceDefinitionUpdateFailed: [
    'Connected, SchemaInSync',
    'The API server rejects a change of the CustomResourceDefinition. The provider must correct it.',
  ],
  CustomResourceDefinitionNotWritten: [
    'SchemaInSync',
    'The server could not write the CustomResourceDefinition, usually for lack of permission. It retries.',
  ],
  CustomResourceDefinitionTerminating: [
    'SchemaInSync',
    'A CustomResourceDefinition of that name is being deleted: wait.',
  ],
  CustomResourceDefinitionNamesNotAccepted: [
    'SchemaInSync',
    'Another CustomResourceDefinition uses one of the names: delete it, which deletes all its objects, or delete the binding.',
  ],
  ListExportsFailed: ['Synced', 'The provider does not list its exports. The server retries.'],
  SyncErrors: ['Synced', 'The server could not create or delete some bindings. It retries.'],
  ExportsVanished: [
    'Synced',
    'The provider no longer lists some exports. The server keeps their bindings, because it did not observe the deletion of an export, or because that deletion may be unintended; the message has the cause. To unbind, delete the bundle with `--cascade=orphan`, and then these bindings.',
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
    'True once every component that applies is Done with the current inputs. If False, the reason is the worst state of a component, `Suspended` (also if a suspended entry is being deleted), `NoComponents`, `TooLarge` (the server starts no run), or `Deleting`. The message also says, even if True, that the entry is suspended, and which components it names that are not registered.',
  RemoteWatchHealthy:
    '`NotWatching`: a watch in the managed cluster does not work; the components with that watch run every five minutes.',
  Livelock:
    'True, `InputsReturn`: the inputs of a component repeatedly return to earlier values. The message names the component, and the paths if the server knows them. The server runs the component less often. It stays True until a later run starts and the server finds that the inputs no longer return. The server does not notice values that never return, such as a counter, or that return only after more than ten others.',
};

export const registrationConditionTexts: Readonly<Record<ValueOf<typeof registrationConditions>, string>> = {
  Accepted: '`Refused`: the registration breaks a rule, and the component does not run. The message names the rule.',
  Reachable:
    '`NotAnswering`: the circuit breaker of the endpoint is open; the message has the call that opened it. The server probes the endpoint. True, `Answering`, also before the first call.',
  Cyclic:
    'True, `ReadsItself`: the component reads fields that depend on its own output, through other components. This is a warning; it is harmless if the values become stable. If they never do, each component runs up to five times a second, unless the condition `Livelock` of the entry slows it down. Then suspend the entry, and correct a component.',
};
