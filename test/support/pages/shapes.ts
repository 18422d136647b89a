/** The contents of pages as the common programs of sites write them, with marks for their words. */

export interface PageShape {
  readonly name: string
  readonly title: string
  readonly main: string
}

const LINE = "{sentence}: {product}, {place}. "
const P = `<p>${LINE.repeat(3)}</p>`

const SHOPS: ReadonlyArray<PageShape> = [
  {
    name: "shop-product",
    title: "{product} – Shop",
    main: `<div class="product type-product"><div class="woocommerce-product-gallery"><a href="/img/1.jpg"><img src="/img/1.jpg" alt="{product}"></a></div><div class="summary entry-summary"><h1 class="product_title entry-title">{product}</h1><p class="price"><del aria-hidden="true"><span class="woocommerce-Price-amount amount"><bdi>25,00&nbsp;<span>&euro;</span></bdi></span></del> <span class="screen-reader-text" style="clip:rect(1px,1px,1px,1px);position:absolute;overflow:hidden;width:1px;height:1px">Original price was {hidden}</span> <ins><span class="amount"><bdi>19,00&nbsp;<span>&euro;</span></bdi></span></ins></p><form class="variations_form cart"><table class="variations" role="presentation"><tbody><tr><th class="label"><label for="size">Size</label></th><td class="value"><select id="size"><option value="">Choose an option</option><option value="m" selected="selected">M</option><option value="l">L</option></select></td></tr></tbody></table><div class="quantity"><input type="number" value="1" min="1"></div><input type="hidden" name="add-to-cart" value="{hidden}"><button type="submit" class="single_add_to_cart_button button alt">Add to cart</button></form><div class="product_meta"><span class="sku_wrapper">SKU: <span class="sku">4711_AB</span></span></div></div><div class="woocommerce-tabs"><div id="tab-description"><h2>Description</h2>${P}</div></div></div>`
  },
  {
    name: "shop-specification",
    title: "{product}",
    main: `<h1>{product}</h1><div class="rating" aria-label="4.5 of 5">4.5 (123)</div><table class="prodDetTable"><tbody><tr><th class="prodDetSectionEntry">Weight</th><td>1.2 kg</td></tr><tr><th>Size</th><td>10 x 20<sup>2</sup> cm</td></tr><tr><th>Maker</th><td><a href="/brand/x">{place}</a></td></tr></tbody></table><ul class="a-unordered-list"><li><span class="a-list-item">{sentence}</span></li><li><span class="a-list-item">Second point</span></li></ul>`
  },
  {
    name: "shop-listing",
    title: "Shop",
    main: `<h1>{product}</h1><p>Showing 1–3 of 3 results</p><ul class="products">${["A", "B", "C"].map((name, at) => `<li class="product"><a href="/p/${name}"><img src="${name}.jpg" alt=""><h2>{product} ${name}</h2><span class="price">${at + 1}9.00</span></a> <a class="button" href="?add=${name}">Add</a></li>`).join("")}</ul>`
  },
  {
    name: "shop-cart",
    title: "Cart",
    main: `<h1>Cart</h1><table class="shop_table cart"><thead><tr><th class="product-remove"><span>&nbsp;</span></th><th>Product</th><th>Price</th><th>Quantity</th><th>Subtotal</th></tr></thead><tbody><tr><td><a href="#" class="remove">&times;</a></td><td><a href="/p/1">{product}</a><dl class="variation"><dt>Size:</dt><dd><p>M</p></dd></dl></td><td>19.00</td><td><input type="number" value="2"></td><td>38.00</td></tr></tbody><tfoot><tr><td colspan="4">Total</td><td>38.00</td></tr></tfoot></table><p>{place}</p>`
  }
]

const DOCS: ReadonlyArray<PageShape> = [
  {
    name: "docs-docusaurus",
    title: "Installation | {product}",
    main: `<div class="theme-doc-markdown markdown"><header><h1>Installation</h1></header><p>{sentence} <code>my_option</code>.</p><div class="language-bash codeBlockContainer"><div class="codeBlockContent"><pre tabindex="0" class="prism-code language-bash"><code class="codeBlockLines"><span class="token-line"><span class="token plain">npm install </span><span class="token parameter">--save</span><br></span><span class="token-line"><span class="token plain">npm start</span><br></span></code></pre></div></div><div class="theme-admonition theme-admonition-tip alert"><div class="admonitionHeading">tip</div><div><p>{place}</p></div></div><h2 class="anchor" id="next">Next<a href="#next" class="hash-link" aria-label="Direct link" title="Direct link">&#8203;</a></h2>${P}</div>`
  },
  {
    name: "docs-sphinx",
    title: "{product} documentation",
    main: `<section id="m"><h1>Module<a class="headerlink" href="#m" title="Link">¶</a></h1><dl class="py function"><dt class="sig" id="m.f"><span class="sig-name">f</span><span class="sig-paren">(</span><em class="sig-param">a</em>, <em class="sig-param">b=None</em><span class="sig-paren">)</span></dt><dd><p>{sentence}</p><dl class="field-list"><dt>Parameters<span class="colon">:</span></dt><dd><ul class="simple"><li><p><strong>a</strong> – first</p></li><li><p><strong>b</strong> – second</p></li></ul></dd></dl></dd></dl><div class="highlight-python3 notranslate"><div class="highlight"><pre><span></span><span class="gp">&gt;&gt;&gt; </span><span class="n">f</span><span class="p">(</span><span class="mi">1</span><span class="p">)</span>
<span class="go">2</span>
</pre></div></div></section>`
  },
  {
    name: "docs-parameters",
    title: "API",
    main: `<h1>GET /items</h1><p>{sentence}</p><h2>Parameters</h2><table><thead><tr><th>Name</th><th>Type</th><th>Default</th><th>Description</th></tr></thead><tbody><tr><td><code>limit</code></td><td>integer</td><td><code>10</code></td><td>At most <code>100</code>.<br>See <a href="../limits#top">limits</a>.</td></tr><tr><td><code>a|b</code></td><td>string</td><td></td><td><ul><li>one</li><li>two</li></ul></td></tr></tbody></table><h2>Answer</h2><pre><code class="language-json">{
  "ok": true
}</code></pre>`
  },
  {
    name: "docs-man",
    title: "ls(1)",
    main: `<h1>LS(1)</h1><pre><b>NAME</b>
       ls - list directory contents

<b>OPTIONS</b>
       <b>-a</b>, <b>--all</b>
              do not ignore entries starting with .
</pre>`
  }
]

const FORUMS: ReadonlyArray<PageShape> = [
  {
    name: "forum-phpbb",
    title: "{product} - Forum",
    main: `<h2 class="topic-title"><a href="./viewtopic.php?t=1">{product}</a></h2>${["ada", "bob", "max"].map((user, at) => `<div id="p${at}" class="post has-profile"><div class="inner"><dl class="postprofile"><dt><a href="./memberlist.php?u=${at}" class="username">${user}</a></dt><dd class="profile-posts"><strong>Posts:</strong> ${at}7</dd></dl><div class="postbody"><h3><a href="#p${at}">Re: {product}</a></h3><p class="author">Mon Nov 23, 2026 10:0${at} am</p><div class="content">${at === 1 ? `<blockquote><div><cite>ada wrote:</cite>{sentence}</div></blockquote>` : ""}Answer ${at}: {place}<br>Second line</div></div></div></div>`).join("<hr class=divider>")}`
  },
  {
    name: "forum-answers",
    title: "{product}? - Answers",
    main: `<div id="question-header"><h1><a href="/q/1">{product}?</a></h1></div><div id="question"><div class="js-vote-count">12</div><div class="s-prose js-post-body"><p>{sentence}</p><pre class="lang-js s-code-block"><code class="hljs language-javascript">let a_b = 1</code></pre></div><div class="comments"><ul class="comments-list"><li class="comment"><span class="comment-copy">Try it. {place}</span> – <a href="/u/1">ada</a></li></ul></div></div><div id="answers"><h2>2 Answers</h2><div class="answer accepted-answer"><div class="js-vote-count">42</div><div class="s-prose"><p>Use <code>x</code>. {greeting}</p></div></div><div class="answer"><div class="js-vote-count">3</div><div class="s-prose"><p>Or not.</p></div></div></div>`
  },
  {
    name: "forum-discourse",
    title: "{product} - Discourse",
    main: `<div id="topic-title"><h1><a href="/t/x/1">{product}</a></h1></div>${[1, 2].map((n) => `<div id="post_${n}" itemscope itemtype="http://schema.org/DiscussionForumPosting" class="topic-body crawler-post"><div class="crawler-post-meta"><span class="creator"><a href="/u/ada"><span itemprop="name">ada</span></a></span> <time datetime="2026-11-23T10:00:00Z">23 November 2026</time></div><div class="post" itemprop="text"><p>Post ${n}: {sentence}</p></div></div>`).join("")}`
  }
]

const WIKIS: ReadonlyArray<PageShape> = [
  {
    name: "wiki-mediawiki",
    title: "{product} – Wiki",
    main: `<h1 id="firstHeading" class="firstHeading"><span class="mw-page-title-main">{product}</span></h1><div id="mw-content-text"><div class="mw-parser-output"><table class="infobox"><caption>{product}</caption><tbody><tr><td colspan="2"><img alt="Picture of it" src="x.jpg"></td></tr><tr><th scope="row">Length</th><td>12.5&nbsp;km</td></tr><tr><th scope="row">Area</th><td>30 km<sup>2</sup></td></tr></tbody></table><p><b>{product}</b> {sentence}.<sup id="cite_ref-1" class="reference"><a href="#cite_note-1">[1]</a></sup> ${LINE}</p><h2><span class="mw-headline" id="History">History</span><span class="mw-editsection"><span>[</span><a href="/edit">edit</a><span>]</span></span></h2>${P}<span class="mwe-math-element"><span class="mwe-math-mathml-inline" style="display: none;"><math><mi>{hidden}</mi></math></span><img src="m.svg" alt="{\\displaystyle E=mc^{2}}"></span><ol class="references"><li id="cite_note-1"><a href="#cite_ref-1">^</a> <cite>{place}</cite></li></ol></div></div>`
  },
  {
    name: "wiki-steps",
    title: "How to",
    main: `<h1>{product}</h1><div class="panel"><div class="panelContent"><p>Note: {place}</p></div></div><ol><li><p>First</p><ul><li>a</li><li>b<ol><li>deep</li></ol></li></ul></li><li><p>Second</p><pre>one
  two</pre></li></ol><details><summary>More</summary><p>{sentence}</p></details><p><input type="checkbox" checked disabled> done <input type="checkbox" disabled> open</p>`
  },
  {
    name: "wiki-words",
    title: "Dictionary",
    main: `<h1>{product}</h1><h3>Noun</h3><p><strong lang="en">{product}</strong> (<i>plural</i> <b>{product}s</b>)</p><ol><li>{sentence}<dl><dd><span>Example:</span> <i>{greeting}</i></dd></dl></li><li>Second sense</li></ol><table class="wikitable"><tr><th></th><th>Singular</th><th>Plural</th></tr><tr><th>Nom.</th><td>a</td><td>b</td></tr></table>`
  }
]

const NEWS: ReadonlyArray<PageShape> = [
  {
    name: "news-article",
    title: "{sentence} | News",
    main: `<article><header><h1>{sentence}</h1><p class="byline">By {name} · <time datetime="2026-11-23">23 Nov 2026</time></p></header><figure><picture><source srcset="a.webp"><img src="a.jpg" alt="{place}"></picture><figcaption>Photo: {name}</figcaption></figure>${P}<h2>{product}</h2>${P}<blockquote><p>{greeting}</p></blockquote>${P}</article>`
  },
  {
    name: "news-live",
    title: "Live",
    main: `<h1>{sentence}</h1><h2>Key points</h2><ul><li>{place}</li><li>{product}</li></ul>${[3, 2, 1].map((n) => `<article class="block" id="block-${n}"><time>1${n}:00</time><h3>Update ${n}</h3>${P}</article>`).join("")}`
  },
  {
    name: "news-comments",
    title: "{product}",
    main: `<article><h1>{product}</h1>${P.repeat(4)}</article><section id="comments"><h2>2 comments</h2><ol class="comment-list"><li class="comment"><b class="fn">ada</b><div class="comment-content"><p>{greeting}</p></div><ol class="children"><li class="comment"><b class="fn">max</b><div class="comment-content"><p>I agree.</p></div></li></ol></li></ol></section>`
  }
]

const TABLES: ReadonlyArray<PageShape> = [
  {
    name: "table-statistics",
    title: "Statistics",
    main: `<h1>{product}</h1><table><caption>Sales</caption><thead><tr><th rowspan="2">Year</th><th colspan="2">{place}</th></tr><tr><th>in</th><th>out</th></tr></thead><tbody><tr><th>2025</th><td>1,200</td><td>-3.5&nbsp;%</td></tr><tr><th>2026</th><td>1,300</td><td>+8.3&nbsp;%</td></tr></tbody><tfoot><tr><td>Sum</td><td>2,500</td><td></td></tr></tfoot></table><p>{sentence}</p>`
  },
  {
    name: "table-timetable",
    title: "Timetable",
    main: `<h1>{place}</h1><table class="tt"><tr><td>Line</td><td>To</td><td>Leaves</td><td>Notes</td></tr><tr><td>U5</td><td>{product}</td><td>10:02<br>10:12</td><td><a href="/n/1">1</a></td></tr><tr><td>U6</td><td>{name}</td><td>10:05</td><td></td></tr></table>`
  }
]

const FORMS: ReadonlyArray<PageShape> = [
  {
    name: "form-profile",
    title: "Settings",
    main: `<h1>Profile</h1><form action="/save" method="post"><input type="hidden" name="csrf" value="{hidden}"><label>Name <input name="n" value="{name}"></label><label>Password <input type="password" value="{hidden}"></label><fieldset><legend>Mail</legend><label><input type="checkbox" checked> News</label><label><input type="radio" name="r"> Daily</label><label><input type="radio" name="r" checked> Weekly</label></fieldset><label>Country <select><option>Austria</option><option selected>{place}</option></select></label><label>About <textarea>{sentence}
second line</textarea></label><button>Save</button></form>`
  }
]

export const PAGE_SHAPES: ReadonlyArray<PageShape> = [
  ...SHOPS,
  ...DOCS,
  ...FORUMS,
  ...WIKIS,
  ...NEWS,
  ...TABLES,
  ...FORMS
]
