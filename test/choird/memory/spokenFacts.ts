/** What people tell an assistant in six languages, each with a question that it answers, and messages that nothing answers. */

export interface SpokenFact {
  readonly told: string
  readonly asked: string
}

export interface SpokenLanguage {
  readonly facts: ReadonlyArray<SpokenFact>
  readonly unrelated: ReadonlyArray<string>
}

/** Lines of `told | asked`. */
const facts = (lines: string): ReadonlyArray<SpokenFact> =>
  lines
    .trim()
    .split("\n")
    .map((line) => {
      const [told = "", asked = ""] = line.split(" | ")
      return { told: told.trim(), asked: asked.trim() }
    })

const lines = (text: string): ReadonlyArray<string> => text.trim().split("\n")

export const SPOKEN: Readonly<Record<string, SpokenLanguage>> = {
  en: {
    facts: facts(`
My dentist is Doctor Merganser in Elm Street and he closes on Fridays. | Who is my dentist?
The alarm code of the summer house is 7719. | What is the alarm code of the summer house?
Grandmother Ottilie turns ninety on the second of June. | When is grandmother Ottilie's birthday?
I parked the trailer behind the old dairy in Kilbride. | Where did I park the trailer?
We pay the window cleaner 45 pounds every other month. | How much do we pay the window cleaner?
My blood group is B negative. | Which blood group am I?
Rufus the beagle must not eat grapes. | What must Rufus not eat?
The spare key hangs inside the clock in the hall. | Where is the spare key?
Our wifi at the cabin is called heron-nest. | How is the wifi at the cabin called?
Pilar teaches me the accordion on Wednesdays at six. | Who teaches me the accordion?
I wear size 43 in hiking boots. | What size are my hiking boots?
The neighbours want the hedge cut before midsummer. | Before when do the neighbours want the hedge cut?
My flight to Reykjavik is booked as booking QX7R2P. | What is the booking of my flight to Reykjavik?
Leftover paint for the shed is a shade named Drizzle. | Which shade is the paint for the shed?
I promised Tomasz to lend him the chainsaw in October. | What did I promise to lend Tomasz?
The boiler was last serviced by a firm called Hearth & Flue. | Which firm serviced the boiler?`),
    unrelated: lines(`
Write a haiku about snow.
How do vaccines work?
Explain the offside rule.
Thanks, that is all!`)
  },
  de: {
    facts: facts(`
Mein Zahnarzt heißt Doktor Eisvogel und hat freitags geschlossen. | Wie heißt mein Zahnarzt?
Der Alarmcode vom Ferienhaus ist 4408. | Welchen Alarmcode hat das Ferienhaus?
Oma Gerlinde wird am dritten Juli achtzig. | Wann wird Oma Gerlinde achtzig?
Den Anhänger habe ich hinter der alten Molkerei abgestellt. | Wo steht der Anhänger?
Der Fensterputzer bekommt alle zwei Monate 60 Euro. | Wie viel bekommen die Fensterputzer?
Meine Blutgruppe ist A positiv. | Welche Blutgruppe habe ich?
Unser Dackel Bruno verträgt keine Weintrauben. | Was verträgt Bruno nicht?
Der Ersatzschlüssel hängt in der Standuhr im Flur. | Wo hängt der Ersatzschlüssel?
Das WLAN in der Hütte heißt Murmelbau. | Wie heißt das WLAN der Hütte?
Mittwochs um sechs habe ich Akkordeonunterricht bei Ludmilla. | Bei wem habe ich Akkordeonunterricht?
Bei Wanderschuhen brauche ich Größe 42. | Welche Größe habe ich bei Wanderschuhen?
Die Nachbarn möchten, dass wir die Hecke vor Pfingsten schneiden. | Bis wann wollen die Nachbarn die Hecke geschnitten haben?
Mein Flug nach Tromsø hat die Buchungsnummer KL9V3T. | Welche Buchungsnummer hat mein Flug nach Tromsø?
Die Farbe für den Schuppen nennt sich Nebelgrau. | Welche Farbe hat der Schuppen?
Ich habe Tilman versprochen, ihm im Oktober die Kettensäge zu leihen. | Was habe ich Tilman versprochen?
Die Heizung wurde von der Firma Glutwerk gewartet. | Welche Firma hat die Heizung gewartet?`),
    unrelated: lines(`
Schreib ein Gedicht über Schnee.
Wie funktionieren Impfstoffe?
Erkläre die Abseitsregel.
Danke, das ist alles!`)
  },
  ru: {
    facts: facts(`
Мой стоматолог — доктор Зимородков, по пятницам он не принимает. | Кто мой стоматолог?
Код сигнализации на даче — 5521. | Какой код сигнализации на даче?
Бабушке Клавдии второго июня исполнится девяносто лет. | Когда день рождения у бабушки Клавдии?
Прицеп стоит за старым молокозаводом. | Где стоит мой прицеп?
Мойщику окон мы платим две тысячи рублей раз в два месяца. | Сколько мы платим за мойку окон?
У меня вторая отрицательная группа крови. | Какая у меня группа крови?
Таксе Фене нельзя виноград. | Чего нельзя есть Фене?
Запасной ключ лежит в часах в прихожей. | Где запасной ключ?
Сеть вайфай в домике называется «Сурок». | Как называется вайфай в домике?
По средам в шесть Людмила учит меня играть на аккордеоне. | Кто учит меня играть на аккордеоне?
Размер моих походных ботинок — 43. | Какой размер у моих ботинок?
Соседи просят подстричь изгородь до Троицы. | До какого дня соседи просят подстричь изгородь?
Бронь на рейс в Мурманск — QX7R2P. | Какой номер брони на рейс в Мурманск?
Сарай покрашен краской «Туман». | Какой краской покрашен сарай?
Я обещал Тимофею одолжить бензопилу в октябре. | Что я обещал Тимофею?
Котёл обслуживала фирма «Теплодар». | Какая фирма обслуживает котел?`),
    unrelated: lines(`
Напиши хайку о снеге.
Как работают вакцины?
Объясни правило офсайда.
Спасибо, это всё!`)
  },
  zh: {
    facts: facts(`
我的牙医叫王明，星期五不上班。 | 我的牙医叫什么名字？
乡下房子的报警密码是8843。 | 报警密码是多少？
奶奶六月二号过九十岁生日。 | 奶奶的生日是哪天？
拖车停在旧奶厂后面。 | 我把拖车停在哪里了？
擦窗户的师傅每两个月收三百块。 | 擦窗户要多少钱？
我的血型是B型阴性。 | 我是什么血型？
小狗豆豆不能吃葡萄。 | 豆豆不能吃什么？
备用钥匙挂在走廊的钟里面。 | 备用钥匙在哪儿？
小木屋的无线网叫白鹭。 | 小木屋的无线网叫什么？
每个星期三六点李老师教我手风琴。 | 谁教我手风琴？
我的登山鞋穿43码。 | 我登山鞋穿几码？
邻居希望端午节以前剪好树篱。 | 邻居希望什么时候剪树篱？
飞哈尔滨的航班订单号是QX7R2P。 | 去哈尔滨的航班订单号是什么？
刷棚子的油漆颜色叫细雨灰。 | 棚子的油漆是什么颜色？
我答应十月把电锯借给小陈。 | 我答应借给小陈什么？
锅炉是暖阳公司保养的。 | 哪家公司保养锅炉？`),
    unrelated: lines(`
写一首关于雪的俳句。
疫苗是怎么起作用的？
解释一下越位规则。
谢谢，就这些！`)
  },
  ja: {
    facts: facts(`
歯医者は佐伯先生で、金曜日は休みです。 | 歯医者の名前は何ですか？
別荘の警報の暗証番号は6612です。 | 別荘の暗証番号は？
おばあちゃんは六月二日に九十歳の誕生日を迎えます。 | おばあちゃんの誕生日はいつ？
トレーラーは古い牛乳工場の裏に停めた。 | トレーラーはどこに停めましたか？
窓拭きの人には二か月ごとに五千円払っている。 | 窓拭きにいくら払っている？
私の血液型はB型マイナスです。 | 私の血液型は何ですか？
犬のモカにぶどうを食べさせてはいけない。 | モカが食べてはいけないものは？
合鍵は廊下の時計の中に掛けてある。 | 合鍵はどこですか？
山小屋のワイファイの名前は「あおさぎ」です。 | 山小屋のワイファイの名前は？
毎週水曜日の六時に中村さんがアコーディオンを教えてくれる。 | アコーディオンを教えてくれるのは誰？
登山靴のサイズは27センチです。 | 登山靴のサイズは？
隣の人はお盆の前に生け垣を刈ってほしいと言っている。 | 生け垣はいつまでに刈ればいい？
札幌行きの飛行機の予約番号はQX7R2Pです。 | 札幌行きの予約番号は何ですか？
物置のペンキの色は霧雨という名前です。 | 物置のペンキは何色？
十月に田村さんにチェーンソーを貸すと約束した。 | 田村さんに何を貸す約束をした？
ボイラーの点検をしたのは日だまり設備という会社です。 | ボイラーを点検した会社は？`),
    unrelated: lines(`
雪についての俳句を書いて。
ワクチンはどうやって効くの？
オフサイドのルールを説明して。
ありがとう、以上です！`)
  },
  ar: {
    facts: facts(`
طبيب أسناني هو الدكتور سامر الحداد وعيادته مغلقة يوم الجمعة. | من هو طبيب الأسنان الخاص بي؟
رمز الإنذار في البيت الريفي هو 3907. | ما هو رمز الإنذار؟
جدتي فاطمة تبلغ التسعين في الثاني من يونيو. | متى تبلغ جدتي التسعين؟
أوقفت المقطورة خلف معمل الألبان القديم. | أين أوقفت المقطورة؟
ندفع لمنظف النوافذ مئة ريال كل شهرين. | كم ندفع لتنظيف النوافذ؟
فصيلة دمي ب سالب. | ما هي فصيلة دمي؟
الكلب ركس لا يجوز أن يأكل العنب. | ماذا لا يجوز أن يأكل ركس؟
المفتاح الاحتياطي معلق داخل ساعة الممر. | أين المفتاح الاحتياطي؟
شبكة الواي فاي في الكوخ اسمها مالك الحزين. | ما اسم شبكة الكوخ؟
تعلمني ليلى العزف على الأكورديون كل أربعاء. | من تعلمني الأكورديون؟
مقاس حذاء المشي عندي 43. | ما مقاس حذائي للمشي؟
يريد الجيران قص السياج قبل العيد. | متى يريد الجيران قص السياج؟
رقم حجز رحلتي إلى أسوان هو QX7R2P. | ما رقم حجز الرحلة إلى أسوان؟
لون طلاء المخزن اسمه رذاذ. | ما لون طلاء المخزن؟
وعدت طارق أن أعيره المنشار في أكتوبر. | بماذا وعدت طارق؟
صيانة الغلاية قامت بها شركة الدفء. | أي شركة قامت بصيانة الغلاية؟`),
    unrelated: lines(`
اكتب قصيدة عن الثلج.
كيف تعمل اللقاحات؟
اشرح قاعدة التسلل.
شكرا، هذا كل شيء!`)
  }
}

/** Talk of every language that tells nothing. */
export const TALK = lines(`
Could you shorten the second paragraph, please? Sure, here is a shorter one.
Kannst du die Tabelle nach Datum sortieren? Ja, sie ist jetzt sortiert.
Проверь, пожалуйста, ошибки в этом письме. Готово, две запятые исправлены.
请把这段话翻译成英文。好的，翻译好了。
この文章をもう少し短くしてください。はい、短くしました。
من فضلك رتب هذه القائمة حسب الأهمية. حسنا، تم الترتيب.
The chart looks better in blue. I changed the colours of the chart.
Wie wird das Wetter am Wochenende? Am Samstag regnet es, sonntags scheint die Sonne.
Напомни, как переименовать ветку. Сначала переименуй её, потом отправь снова.
明天的会议改到下午三点了。好的，我记下来了。
火曜日の会議は二時からに変わりました。わかりました。
الاجتماع يوم الثلاثاء تأجل إلى الساعة الثالثة. حسنا.`)
