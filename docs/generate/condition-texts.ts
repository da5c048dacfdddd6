import type { RequestCondition, summaryConditions, TemplateCondition } from '../../src/api/access/names.ts';
import type { BindReason } from '../../src/api/binding/reasons.ts';
import type { entryConditions, registrationConditions } from '../../src/api/inventory/names.ts';

type ValueOf<T> = T[keyof T];

/** When a condition is False or has a reason to know, and what to do; Markdown. The types hold that none is missing. */
export const templateConditionTexts: Readonly<Record<TemplateCondition, string>> = {
  TemplateDurationsValid:
    '`NotAcceptable`: correct `defaultDuration` and `maxDuration`. The webhook denies new templates with this fault.',
  TargetRefExists:
    '`NotFound`: create the workload or correct `controllerTargetRef`. The template becomes ready when the workload appears.',
  AccessCommandValid:
    '`InvalidAccessCommand`: correct `accessCommand`. The webhook denies new templates with this fault.',
  AuthorHoldsRights: '`AuthorUnknown`, `AuthorLacksRights`: see [template authors](../concepts/template-authors.md).',
};

export const requestConditionTexts: Readonly<Record<RequestCondition, string>> = {
  TargetTemplateExists:
    '`NotFound`: the namespace has no such template. `TemplateNotReady`: the template has a condition that is False. Final.',
  AccessDurationsValid: '`NotAcceptable`: the duration cannot be read or is too short. Final.',
  AccessStillValid: '`Timeout`: the requested time passed before access could be opened. Final.',
  AccessResourcesCreated: 'Any [code](codes.md): access could not be opened. Final.',
  AccessResourcesReady: '`NotYetReady`: the pod is not Ready; the message says what it waits for. Wait.',
  AccessMessage: '`InvalidAccessCommand`: the pod is ready, but the command of the template cannot be rendered for it.',
};

export const summaryConditionTexts: Readonly<Record<ValueOf<typeof summaryConditions>, string>> = {
  Ready: 'True once every other condition is True.',
  Reconciling: 'True while the server waits for something that needs no action. Absent otherwise.',
  Stalled: 'True if the object stays as it is until a person changes something. Absent otherwise.',
};

export const bindReasonTexts: Readonly<Record<BindReason, readonly [condition: string, text: string]>> = {
  KubeconfigSecretNotFound: ['SecretValid', 'The Secret does not exist: create it, or run `kubectl bind` again.'],
  KubeconfigSecretInvalid: [
    'SecretValid',
    'The Secret lacks its key, holds no kubeconfig or one that is not accepted, or may not be read. If a new kubeconfig does not work, the server keeps using the old one.',
  ],
  APIServiceBindingInvalid: [
    'SecretValid',
    'The binding is malformed: correct the field that the message names, or delete the binding.',
  ],
  InformersSyncing: [
    'InformersSynced',
    'The server has just connected, or the API server does not serve a new kind yet: wait. With severity Warning, two attempts have failed; the message has the cause.',
  ],
  InformerSyncTimeout: [
    'InformersSynced',
    'The provider has listed nothing for 2.5 minutes. Check the network and the kubeconfig; the server keeps trying.',
  ],
  ClusterBindingUpdateFailed: [
    'Heartbeating',
    'The heartbeat cannot be written to the provider: it is unreachable, or has revoked the credentials. Everything converges when it is back.',
  ],
  APIServiceExportNotFound: [
    'Connected',
    'The provider has no export with the name of the binding: request it, or delete the binding.',
  ],
  APIServiceExportInvalid: [
    'Connected',
    'The export is malformed, or has more than 256 resources or 256 claims. It counts as present, so nothing is deleted. The provider corrects it.',
  ],
  APIServiceExportFailed: ['Connected', 'The provider refused the request; the message has its reason.'],
  InvalidPermissionClaim: [
    'Connected',
    'The export claims objects that cannot be claimed. The server ignores that claim.',
  ],
  InvalidClaimableAnnotation: [
    'Connected',
    'The annotation `binding.drawbridge.dev/claimable` of the binding is invalid. Nothing is shared until it is corrected.',
  ],
  ObjectsNotInSync: [
    'Connected',
    'Some objects cannot be synced, or the objects of a kind cannot be listed. The message lists the worst five; each object has an Event.',
  ],
  Unbinding: ['Connected', 'The binding is being deleted; the message says what it waits for.'],
  ResourceNotAllowed: ['Connected, SchemaInSync', 'The kind is not in `--bindable`: add it, or delete the binding.'],
  ForeignCustomResourceDefinition: [
    'Connected, SchemaInSync',
    'A CustomResourceDefinition of that name was not created for this binding. It was not changed: delete one of the two.',
  ],
  BoundSchemaFetchFailed: [
    'Connected, SchemaInSync',
    'The provider exports a kind without a readable schema. The provider corrects it.',
  ],
  CustomResourceDefinitionCreateFailed: [
    'Connected, SchemaInSync',
    'The API server rejects the definition of the kind. The provider corrects it.',
  ],
  CustomResourceDefinitionUpdateFailed: [
    'Connected, SchemaInSync',
    'The API server rejects a change of the definition. The provider corrects it.',
  ],
  CustomResourceDefinitionNotWritten: [
    'SchemaInSync',
    'The definition could not be written, usually for lack of permission. The server retries.',
  ],
  CustomResourceDefinitionTerminating: ['SchemaInSync', 'A definition of that name is being deleted: wait.'],
  CustomResourceDefinitionNamesNotAccepted: [
    'SchemaInSync',
    'Another definition uses one of the names: delete that definition.',
  ],
  ListExportsFailed: ['Synced', 'The provider does not list its exports. The server retries.'],
  SyncErrors: ['Synced', 'Some bindings could not be created or deleted. The server retries.'],
  ExportsVanished: [
    'Synced',
    'The provider no longer lists exports that the server did not see being deleted. Nothing is deleted: delete the bindings that the message names if they should go.',
  ],
  ProviderSecretNotFound: ['SecretValid', 'On the ClusterBinding: the provider has no Secret for this consumer.'],
  ProviderSecretInvalid: [
    'SecretValid',
    'On the ClusterBinding: the Secret of the provider holds no usable kubeconfig.',
  ],
  ParseError: ['ValidVersion', 'On the ClusterBinding: the version of the konnector cannot be parsed.'],
  AnotherKonnector: [
    'SoleKonnector',
    'On the ClusterBinding: another konnector writes to it too. Stop one of the two.',
  ],
  ForeignConsumerSecret: [
    'SoleKonnector',
    'On the ClusterBinding: it names a Secret of another consumer. Give each cluster a kubeconfig of its own.',
  ],
  APIServiceBindingNotFound: ['Connected', 'On the export: the consumer has no binding for it.'],
  BoundSchemasNotValid: ['Connected', 'On the export: the consumer cannot use its schemas; the message has the cause.'],
  NA: ['ConsumerInSync', 'On the export: True or False do not apply.'],
  Unknown: ['ConsumerInSync', 'On the export: the state is not known yet.'],
};

export const entryConditionTexts: Readonly<Record<ValueOf<typeof entryConditions>, string>> = {
  Ready:
    'True once every component that applies is Done with the current inputs. Reasons when False: the worst state of a component, `Suspended`, `NoComponents`, `TooLarge` (nothing runs), or `Deleting`.',
  RemoteWatchHealthy:
    '`NotWatching`: a watch in the managed cluster does not work; the components that rely on it run every five minutes.',
  Livelock:
    'True, `InputsReturn`: the inputs of a component return to earlier values again and again. The message names the component and the path.',
};

export const registrationConditionTexts: Readonly<Record<ValueOf<typeof registrationConditions>, string>> = {
  Accepted: '`Refused`: the registration breaks a rule, and the component does not run. The message names the rule.',
  Reachable: '`NotAnswering`: the circuit breaker of the endpoint is open. The server probes the endpoint.',
  Cyclic:
    'True, `ReadsItself`: the component reads what depends on its own output. A warning; harmless if values settle.',
};
