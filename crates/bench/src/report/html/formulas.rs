//! Method section of the page: how each figure is computed, with formulas in MathML.

/// The method section.
pub(super) const METHOD: &str = r#"<section id="method"><h2>Method</h2>
<div class="method">
<div><h3>Throughput</h3>
<p>The send window opens when set-up is done and closes with the last completion, or with the end of the
schedule if that is later. Set-up is timed apart.</p>
<math display="block"><mtext>sender rate</mtext><mo>=</mo><mfrac><mtext>completed messages</mtext><mtext>send window</mtext></mfrac></math>
<p>Where a sink counts, its rate is taken between its first and its last message; the steady rate leaves
out the fence-post.</p>
<math display="block"><mtext>sink rate</mtext><mo>=</mo><mfrac><mi>n</mi><mrow><msub><mi>t</mi><mtext>last</mtext></msub><mo>−</mo><msub><mi>t</mi><mtext>first</mtext></msub></mrow></mfrac><mspace width="2em"/><mtext>steady rate</mtext><mo>=</mo><mfrac><mrow><mi>n</mi><mo>−</mo><mn>1</mn></mrow><mrow><msub><mi>t</mi><mtext>last</mtext></msub><mo>−</mo><msub><mi>t</mi><mtext>first</mtext></msub></mrow></mfrac></math>
</div>
<div><h3>CPU</h3>
<p>Each process's CPU clock, in nanoseconds, at both edges of the window. 100 % is one core; the total is the
sum of the processes.</p>
<math display="block"><mtext>CPU %</mtext><mo>=</mo><mn>100</mn><mo>·</mo><mfrac><mrow><mi mathvariant="normal">Δ</mi><mtext>CPU time</mtext></mrow><mrow><mi mathvariant="normal">Δ</mi><mtext>wall time</mtext></mrow></mfrac></math>
<h3>Latency</h3>
<p>Nanoseconds in HDR histograms with three significant figures, one per worker, merged; as many recorded as
completed. Service counts from the real send, response from the intended one.</p>
</div>
<div><h3>Over runs</h3>
<p>Sample variance, and Student's t interval of the mean, cut at zero. Below two runs there is neither.</p>
<math display="block"><msup><mi>s</mi><mn>2</mn></msup><mo>=</mo><mfrac><mn>1</mn><mrow><mi>n</mi><mo>−</mo><mn>1</mn></mrow></mfrac><munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover><msup><mrow><mo>(</mo><msub><mi>x</mi><mi>i</mi></msub><mo>−</mo><mover><mi>x</mi><mo>¯</mo></mover><mo>)</mo></mrow><mn>2</mn></msup></math>
<math display="block"><mover><mi>x</mi><mo>¯</mo></mover><mo>±</mo><msub><mi>t</mi><mrow><mn>0.975</mn><mo>,</mo><mi>n</mi><mo>−</mo><mn>1</mn></mrow></msub><mo>·</mo><mfrac><mi>s</mi><msqrt><mi>n</mi></msqrt></mfrac></math>
</div>
<div><h3>Between cases</h3>
<p>The interval of a ratio ρ of two means holds every ρ that a t test with unequal variances does not reject
(Fieller), with the degrees of freedom ν of Welch and Satterthwaite. If it includes 1, no difference is
shown, which does not prove that there is none.</p>
<math display="block"><msup><mrow><mo>(</mo><mover><mi>a</mi><mo>¯</mo></mover><mo>−</mo><mi>ρ</mi><mover><mi>b</mi><mo>¯</mo></mover><mo>)</mo></mrow><mn>2</mn></msup><mo>≤</mo><msubsup><mi>t</mi><mrow><mn>0.975</mn><mo>,</mo><mi>ν</mi></mrow><mn>2</mn></msubsup><mrow><mo>(</mo><mfrac><msubsup><mi>s</mi><mi>a</mi><mn>2</mn></msubsup><msub><mi>n</mi><mi>a</mi></msub></mfrac><mo>+</mo><msup><mi>ρ</mi><mn>2</mn></msup><mfrac><msubsup><mi>s</mi><mi>b</mi><mn>2</mn></msubsup><msub><mi>n</mi><mi>b</mi></msub></mfrac><mo>)</mo></mrow></math>
</div>
</div></section>
"#;
