import assert from 'node:assert/strict';
import { shortenedAccess } from '../../../../src/access/lifecycle/shortened-access.ts';
import type { Grant } from '../../../../src/api/access/grant.ts';
import { grantOf } from '../../../support/access-objects.ts';
import { condition, createdAtMs, requestView } from '../../../support/request-views.ts';

const minute = 60_000;
const grantedEndMs = createdAtMs + 30 * minute;

describe('AccessShortened', () => {
  const shortened = (
    duration: string | undefined,
    endMs = grantedEndMs,
    was?: 'True',
    grantedUntilMs = grantedEndMs,
  ) => {
    const grant = { ...grantOf(), expiresAt: '2026-11-21T09:30:00Z' } as unknown as Grant;
    const conditions = was ? [condition('AccessShortened', was)] : [];
    const spec = { templateName: 'shell', ...(duration === undefined ? {} : { duration }) };
    const update = shortenedAccess(requestView({ spec, grant, conditions }), { endMs, grantedEndMs: grantedUntilMs });
    return update && `${update.status} ${update.reason}: ${update.message}`;
  };

  it('is absent if the access lasts as asked, or if no duration was asked for', () => {
    for (const duration of ['30m', '10m', undefined, 'a while']) assert.equal(shortened(duration), undefined);
  });

  it('says what was asked and what was granted', () => {
    assert.equal(shortened('30m1s'), 'True LessThanAsked: asked for 30 min 1 s, granted 30 min');
  });

  it('says until when the access lasts after an edit of the template', () => {
    const message =
      'True TemplateChanged: until 2026-11-21T09:20:00Z instead of 2026-11-21T09:30:00Z, because an edit of the template shortened it';
    assert.equal(shortened('30m', createdAtMs + 20 * minute), message);
    assert.equal(shortened('5h', createdAtMs + 20 * minute), message);
  });

  it('is False after an extension reaches what was asked', () => {
    assert.equal(shortened('40m', grantedEndMs, 'True'), 'True LessThanAsked: asked for 40 min, granted 30 min');
    const endMs = grantedEndMs + 10 * minute;
    assert.equal(shortened('40m', endMs, 'True', endMs), 'False AsGranted: until 2026-11-21T09:40:00Z');
  });

  it('is False after another edit restores the end', () => {
    assert.equal(shortened('30m', grantedEndMs, 'True'), 'False AsGranted: until 2026-11-21T09:30:00Z');
  });
});
