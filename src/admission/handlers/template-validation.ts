import { isDeepStrictEqual } from 'node:util';
import {
  type Explanation,
  explain,
  firstViolation,
  introducedViolation,
  type Violation,
} from '../../access/policy/policy.ts';
import { sessionOf } from '../../access/policy/session-policy.ts';
import {
  authorCallerViolation,
  authorPermissionsViolation,
  permissionsHandedOut,
} from '../../access/policy/template-permissions.ts';
import {
  notPlanned,
  type TemplateInput,
  templatePolicy,
  templateWarnings,
} from '../../access/policy/template-policy.ts';
import { explanationLines, violationWarning } from '../../access/policy/warnings.ts';
import { accessOfTemplate } from '../../api/access/kinds.ts';
import {
  fieldsIgnored,
  type TemplateCondition,
  type TemplateKind,
  templateConditions,
} from '../../api/access/names.ts';
import type { Code } from '../../api/codes.ts';
import { readBySchema } from '../../api/schema/read.ts';
import { own } from '../../kit/json-value.ts';
import { type Decision, deny, type Handler, invalidSpec } from '../decision.ts';
import type { AdmissionPorts, PresentPlan } from '../ports.ts';

/**
 * Validating webhook of templates: denies a spec that is invalid, makes the leader deny every
 * request, or hands out what the caller lacks. What depends on other objects is a warning. No
 * stored violation of rule book or plan denies an update, and nothing denies an unchanged spec.
 */
export function validateTemplate(
  kind: TemplateKind,
  ports: Pick<
    AdmissionPorts,
    'missingPermissions' | 'grantable' | 'serverNamespace' | 'ownViolations' | 'presentPlan' | 'gatewayViolation'
  >,
): Handler {
  return {
    async decide({ operation, namespace, name, user, object, oldObject, dryRun }, signal, address) {
      const details = { template: name };
      const raw = own(object, 'spec');
      // Metadata of a template that predates a rule can still change, so that it can be deleted.
      const isUnchanged = operation === 'UPDATE' && isDeepStrictEqual(raw, own(oldObject, 'spec'));
      if (isUnchanged && own(own(object, 'metadata'), 'deletionTimestamp') !== undefined) return { details };
      const read = readBySchema<TemplateInput['spec']>(accessOfTemplate(kind).template.structural.spec, raw, 'spec');
      if (!read.ok) {
        const decision = invalidSpec(read.errors);
        return isUnchanged && decision.denial ? { details, warnings: [violationWarning(decision.denial)] } : decision;
      }
      const { grantable, serverNamespace } = ports;
      const input: TemplateInput = { kind, namespace, name, spec: read.value, grantable, serverNamespace };
      const stored = isUnchanged
        ? input
        : operation === 'UPDATE'
          ? storedInput(input, own(oldObject, 'spec'))
          : undefined;
      const denied = (violation: Violation, found: Omit<CheckResults, 'gateway'> = {}): Decision => ({
        ...deny(violation, details),
        warnings: dryRun ? dryRunLines(input, found, isUnchanged) : [],
      });
      const violation = firstViolation(templatePolicy, input, stored);
      if (violation) return denied(violation);
      let author: CheckResults['author'] = passed;
      if (isUnchanged) {
        author = storedAuthorResult(object);
      } else {
        const authorViolation =
          authorCallerViolation(user, read.value) ??
          authorPermissionsViolation(
            user.username,
            namespace,
            await ports.missingPermissions(user, namespace, permissionsHandedOut(input), signal),
            'to apply it',
          );
        if (authorViolation) return denied(authorViolation, { author: authorViolation });
      }
      const ownViolations = await ports.ownViolations(input, address, signal);
      if (ownViolations !== notPlanned && ownViolations.length > 0) {
        const before = isUnchanged ? ownViolations : stored ? await ports.ownViolations(stored, address, signal) : [];
        // If the stored spec was not planned, the violation may be old. The leader denies requests.
        const introduced = before === notPlanned ? undefined : introducedViolation(ownViolations, before);
        if (introduced) return denied(introduced, { author: passed, plan: introduced });
      }
      const planProblem = ownViolations === notPlanned ? notPlanned : ownViolations[0];
      const keptViolation = firstViolation(templatePolicy, input);
      // These depend on other objects, which users may create or correct later: warnings.
      const present: PresentPlan = planProblem || keptViolation ? {} : await ports.presentPlan(input, address, signal);
      const plan: CheckResults['plan'] = planProblem ?? (keptViolation ? undefined : (present.denial ?? passed));
      const gateway: CheckResults['gateway'] =
        sessionOf(read.value.accessConfig) && (ports.gatewayViolation() ?? passed);
      const { selectorNotes = [] } = present;
      const ignored = isUnchanged ? ignoredFieldsWarnings(object) : [];
      const warnings = [...ignored, ...templateWarnings(input), ...selectorNotes];
      if (dryRun) {
        return { details, warnings: [...warnings, ...dryRunLines(input, { author, plan, gateway }, isUnchanged)] };
      }
      const unusable = [author, keptViolation ?? plan, gateway].flatMap((found) => {
        if (found === undefined || found === passed) return [];
        return [found === notPlanned ? notPlannedWarning : violationWarning(found)];
      });
      // Invalid `accessConfig.rules` give AuthorHoldsRights and the rule book the same violation.
      return { details, warnings: [...new Set([...unusable, ...warnings])] };
    },
  };
}

const notPlannedWarning =
  'the server did not check whether requests can use this template, because that takes too much work, or because too many ' +
  'such checks wait; the condition AccessPlanValid of the stored template shows the result';

const passed = 'passed';

/** After the rule book; undefined for a check that did not run. */
interface CheckResults {
  readonly author?: Violation | typeof passed | undefined;
  readonly plan?: Violation | typeof passed | typeof notPlanned | undefined;
  /** Undefined also for a template whose users need no gateway. */
  readonly gateway?: Violation | typeof passed | undefined;
}

/** The rule book, the later checks, and what only the API server can check. */
function dryRunLines(input: TemplateInput, { author, plan, gateway }: CheckResults, isUnchanged: boolean): string[] {
  const objects = accessOfTemplate(input.kind).createsPod ? 'the Pod and the Role' : 'the Role';
  const rule = (name: string, found: CheckResults['plan'], requirement: string, remedy: string): Explanation => {
    if (found === passed) return { rule: name, verdict: 'pass', requirement };
    if (found === undefined || found === notPlanned) return { rule: name, verdict: 'unknown', requirement, remedy };
    return { rule: name, verdict: 'fail', requirement, violation: found };
  };
  const correct = 'correct what fails, and check again';
  const holds = 'holds the permissions that the template hands out';
  const planRemedy =
    plan === notPlanned ? 'store the template; then its condition AccessPlanValid shows the result' : correct;
  const storeIt =
    'store the template, because a dry run does not ask the API server; if the API server rejects the Pod or the Role of a grant, the condition AccessPlanValid of the template is False';
  return explanationLines([
    ...explain(templatePolicy, input),
    isUnchanged
      ? rule('author', author, `the author ${holds}`, 'read the condition AuthorHoldsRights of the stored template')
      : rule('author', author, `the author is the caller, and ${holds}`, correct),
    rule('plan', plan, `the server can plan ${objects} of a grant`, planRemedy),
    ...(gateway ? [rule('gateway', gateway, 'the API server forwards calls to the gateway', correct)] : []),
    rule('api-server', undefined, `the API server accepts ${objects} of a grant`, storeIt),
  ]);
}

/** Of this generation; undefined if the leader has not checked it. */
function storedAuthorResult(object: unknown): CheckResults['author'] {
  const found = storedCondition(object, templateConditions.authorHoldsRights);
  const status = own(found, 'status');
  if (status !== 'False') return status === 'True' ? passed : undefined;
  return { code: own(found, 'reason') as Code, message: String(own(found, 'message')), status: 403 };
}

/** At most one warning, for this generation. */
function ignoredFieldsWarnings(object: unknown): string[] {
  const condition = storedCondition(object, templateConditions.accessPlanValid);
  return own(condition, 'reason') === fieldsIgnored ? [String(own(condition, 'message'))] : [];
}

/** As the leader wrote it for this generation. */
function storedCondition(object: unknown, type: TemplateCondition): unknown {
  const conditions = own(own(object, 'status'), 'conditions');
  const generation = own(own(object, 'metadata'), 'generation');
  return (Array.isArray(conditions) ? conditions : []).find(
    (condition) => own(condition, 'type') === type && own(condition, 'observedGeneration') === generation,
  );
}

/** Undefined if the spec before the update violates its schema. */
function storedInput(input: TemplateInput, oldSpec: unknown): TemplateInput | undefined {
  const read = readBySchema<TemplateInput['spec']>(
    accessOfTemplate(input.kind).template.structural.spec,
    oldSpec,
    'spec',
  );
  return read.ok ? { ...input, spec: read.value } : undefined;
}
